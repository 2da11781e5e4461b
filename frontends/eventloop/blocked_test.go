package eventloop

import (
	"io"
	"strings"
	"testing"
)

// withheld makes "later" replies wait until the test releases them.
func withheld(f *fixture, _ *Options, _ *Listener) { f.toy.release = make(chan struct{}) }

// burst is several times the input limit.
var burst = strings.Repeat("echo "+strings.Repeat("z", 994)+"\n", 4000)

func TestInputBehindABlockedCommandWaits(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		go func() { _, _ = io.WriteString(c, "later a\n"+burst+"later b\necho end\n") }() // a failure shows below
		eventually(t, "not read", func() bool { return f.count(func(c *conn) bool { return c.paused }) == 1 })
		if n := f.count(func(c *conn) bool { return c.in.len() > c.group.bounds.MaxInput }); n != 0 {
			t.Error("more input is held than the limit allows")
		}
		close(f.toy.release)
		c.want("a")
		for range 4000 {
			c.want(strings.Repeat("z", 994))
		}
		c.want("b", "end")
		c.closeWrite()
		c.wantEnd()
		eventually(t, "no descriptor", func() bool { return f.pools.sockets.Open() == 0 })
	}, bounds(1<<20, roomyLimit), withheld)
}

// A kernel whose buffer is full accepts nothing more, not even the end of a connection. Therefore the client sends
// small pieces, each after the server has read the last one, until the server stops reading. Then it sends one more.
func TestPeerOfAPausedSocketIsChecked(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*client){
		"close": func(c *client) { _ = c.Close() },
		"reset": (*client).reset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
				c := dial(t)
				c.send("later job\n")
				for sent, paused := 0, false; !paused; {
					c.send(burst[sent : sent+10_000])
					sent += 10_000
					eventually(t, "read", func() bool {
						return f.count(func(c *conn) bool {
							paused = c.paused
							return paused || c.in.len() == sent
						}) == 1
					})
				}
				c.send("echo unread\n")
				end(c)
				eventually(t, "session closed", func() bool { return f.toy.closed.Load() == 1 })
				eventually(t, "no descriptor", func() bool { return f.pools.sockets.Open() == 0 })
			}, bounds(1<<20, roomyLimit), withheld)
		})
	}
}

func TestHalfClosedClientReceivesReplyOfBlockedCommand(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c, gone := dial(t), dial(t)
		for _, c := range []*client{c, gone} {
			c.send("later job\nlater a\necho b\nunfi")
			c.closeWrite()
			c.want("none")
		}
		_ = gone.Close() // the server notices only when it writes
		close(f.toy.release)
		c.want("a", "b")
		if rest := c.wantEnd(); rest != "left 4\n" {
			t.Errorf("got %.80q after the end", rest)
		}
		eventually(t, "no descriptor", func() bool { return f.pools.sockets.Open() == 0 })
	}, withheld)
}

func TestResetOfHalfClosedClientIsNoticed(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.send("later a\n")
		c.closeWrite()
		eventually(t, "end seen", func() bool { return f.count(func(c *conn) bool { return c.eof }) == 1 })
		c.reset()
		eventually(t, "session closed", func() bool { return f.toy.closed.Load() == 1 })
		eventually(t, "no descriptor", func() bool { return f.pools.sockets.Open() == 0 })
		close(f.toy.release)
	}, withheld)
}
