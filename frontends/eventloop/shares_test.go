package eventloop

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"broker/access"
	"broker/frontends"
)

// principal is one with a role. Two of a name hold the same places.
func principal(name string) *access.Principal {
	c := &access.Control{}
	c.Load([]access.Entry{{Name: name, Grants: []access.Grant{{Role: access.Consume}}}})
	return c.Default(name)
}

func (f *fixture) dialFrom(t *testing.T, address string) *client {
	t.Helper()
	d := dialer(&net.TCPAddr{IP: net.ParseIP(address)})
	nc, err := d.Dial("tcp", f.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, nc)
}

// enter logs in, if the login is not empty, and waits for an answer.
func (c *client) enter(login string) {
	c.t.Helper()
	c.send(login + "echo in\n")
	c.want("in")
}

func conns(n int) setting {
	return func(_ *fixture, o *Options, _ *Listener) { o.MaxConns = map[string]int{"toy": n} }
}

func TestClientsWithoutRightsMakeRoomForNewcomers(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		member := f.dialFrom(t, "127.0.0.1")
		member.enter("login tenant\n")
		var slow []*client
		for range 3 {
			c := f.dialFrom(t, "127.0.0.66")
			c.enter("")
			slow = append(slow, c)
		}
		f.dialFrom(t, "127.0.0.66").want("full")
		newcomer := f.dialFrom(t, "127.0.0.2")
		newcomer.enter("login other\n")
		if rest := slow[0].wantEnd(); rest != "" {
			t.Errorf("the displaced connection receives %q", rest)
		}
		for _, c := range []*client{member, slow[1], slow[2], newcomer} {
			c.enter("")
		}
		if n := f.Counts()["toy"].Dismissed; n != 1 {
			t.Errorf("%d connections are counted as dismissed", n)
		}
	}, guests(patience), conns(4))
}

func TestOnePrincipalLeavesConnectionsToOthers(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		open := 0
		for _, share := range []struct {
			name  string
			conns int
		}{{"tenant", 2}, {"other", 1}} {
			for range share.conns {
				f.dial(t).enter("login " + share.name + "\n")
			}
			above := f.dial(t)
			above.send("login " + share.name + "\n")
			if got := above.wantEnd(); got != frontends.DismissConns+"\n" {
				t.Errorf("one more connection of %s receives %q", share.name, got)
			}
			_ = above.Close()
			open += share.conns
			eventually(t, "its place is free", func() bool { return f.pools.sockets.Open() == open })
		}
		last := f.dial(t)
		last.enter("")
		if !strings.Contains(f.log.String(), `"limit":"connections"`) {
			t.Errorf("the log has no line about it: %s", f.log)
		}
	}, guests(patience), conns(4))
}

func TestAnAddressWithoutPrincipalsLeavesDescriptorsToOthers(t *testing.T) {
	t.Parallel()
	f := setup(t, func(_ *fixture, o *Options, _ *Listener) { o.MaxSockets = 16 })
	for range 14 {
		f.dialFrom(t, "127.0.0.66").enter("")
	}
	if got := f.dialFrom(t, "127.0.0.66").wantEnd(); got != frontends.DismissConns+"\n" {
		t.Errorf("one address gets more: %q", got)
	}
	f.dialFrom(t, "127.0.0.1").enter("")
}

func TestOnePrincipalLeavesRoomForTheInputOfOthers(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		half := fmt.Sprintf("body %d\n%s", size, strings.Repeat("x", size-100))
		begin := func(name string) *client {
			c := dial(t)
			c.enter("login " + name + "\n")
			go func() { _, _ = c.Write([]byte(half)) }() // ends with the connection
			return c
		}
		for range 2 { // a principal may hold two of four
			begin("tenant")
		}
		eventually(t, "two halves are held", func() bool {
			return f.count(func(c *conn) bool { return c.in.len() > size-200 }) == 2
		})
		if got := begin("tenant").wantEnd(); got != frontends.DismissBytes+"\n" {
			t.Errorf("the third receives %.80q", got)
		}
		other := begin("other")
		other.send(strings.Repeat("x", 100) + "\n")
		if _, err := other.r.ReadString('\n'); err != nil {
			t.Errorf("another principal: %v", err)
		}
	}, guests(patience), func(f *fixture, o *Options, _ *Listener) {
		f.toy.bounds.MaxInput, f.toy.bounds.MaxOutput, o.Buffers = size+size/8, size, 1
	})
}

func TestOnePrincipalLeavesRoomForTheOutputOfOthers(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		const much = 4_000_000 // of which the kernel buffers a part
		slow := dial(t)
		slow.enter("login tenant\n")
		slow.send(fmt.Sprintf("big %d\n", much))
		eventually(t, "output is held", func() bool {
			return f.count(func(c *conn) bool { return c.charged > much/4 }) == 1
		})
		also := dial(t)
		also.enter("login tenant\n")
		also.send(fmt.Sprintf("big %d\n", much))
		eventually(t, "cut off", func() bool { return strings.Contains(f.log.String(), `"limit":"shared_bytes"`) })
		other := dial(t)
		other.enter("login other\n")
		other.send("big 200000\n")
		other.want(strings.Repeat("x", 200000))
		slow.want(strings.Repeat("x", much))
		eventually(t, "everything is given back", func() bool {
			return f.count(func(c *conn) bool { return c.charged > 0 }) == 0
		})
	}, bounds(1<<20, 16<<20), func(f *fixture, o *Options, _ *Listener) { f.toy.guests, o.Buffers = true, 10_000_000 })
}
