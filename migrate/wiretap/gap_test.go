package wiretap

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// quick are short waits, except for a reply of the second server.
var quick = times{
	answer: 5 * time.Second, fresh: 500 * time.Millisecond, skip: 10 * time.Millisecond, look: 10 * time.Millisecond,
}

// script plays events of beanstalkd clients to a comparison with a tubeServer that counts from 20.
type script struct {
	*testing.T
	c *Comparer
}

func newScript(t *testing.T, conns int, change func(*Options)) *script {
	t.Helper()
	o := Options{Protocol: "beanstalk", Dial: dialTo(startTube(t, 20, nil)), times: quick}
	change(&o)
	c, err := NewComparer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for conn := 1; conn <= conns; conn++ {
		c.Watch(Event{Conn: conn, Kind: Opened})
	}
	return &script{t, c}
}

func (s *script) asks(conn int, request string) {
	s.c.Watch(Event{Conn: conn, Kind: FromClient, Data: []byte(request)})
}

func (s *script) says(conn int, reply string) {
	s.c.Watch(Event{Conn: conn, Kind: FromServer, Data: []byte(reply)})
}

// until repeats an action until the report is as wanted.
func (s *script) until(what string, wanted func(r *Report) bool, action func()) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; {
		action()
		r := s.c.Report()
		if wanted(&r) {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("not %s: %s; %s; %v", what, r.Summary(), r.Verdict(), r.Found)
		}
		time.Sleep(quick.look)
	}
}

func onlyBroker(r *Report) bool { return r.Jobs.OnlyBroker == 1 && r.Different == 1 }

func TestJobThatTheServerNeverDeliversIsFound(t *testing.T) {
	t.Parallel()
	s := newScript(t, 2, func(*Options) {})
	s.asks(1, "put 0 0 60 1\r\na\r\n")
	s.says(1, "INSERTED 100\r\n")
	s.until("found", onlyBroker, func() {
		s.asks(2, "reserve-with-timeout 0\r\n")
		s.says(2, "TIMED_OUT\r\n")
	})
	r := s.c.Finish()
	if r.Different != 1 || len(r.Jobs.FromBroker) != 1 || r.Jobs.FromBroker[0] != "100" || r.Jobs.OnlyServer != 0 ||
		r.Jobs.Accepted != 1 || r.Found[0].Server != `"TIMED_OUT\r\n"` {
		t.Errorf("%s; %s; %v", r.Summary(), r.Verdict(), r.Found)
	}
}

// A job that only the second server delivers disturbs no later request, and is found for a client that still waits.
func TestJobThatTheServerKeepsFromAWaitingClient(t *testing.T) {
	t.Parallel()
	s := newScript(t, 3, func(*Options) {})
	s.asks(1, "put 0 0 60 1\r\na\r\n")
	s.says(1, "INSERTED 100\r\n")
	s.asks(2, "reserve\r\n")
	s.until("found", onlyBroker, func() {})
	s.asks(1, "put 0 0 60 1\r\nb\r\n")
	s.says(1, "INSERTED 101\r\n")
	s.says(2, "RESERVED 101 1\r\nb\r\n")
	s.asks(2, "delete 101\r\n")
	s.says(2, "DELETED 1\r\n")
	if r := s.c.Finish(); r.Different != 1 || r.Equal != 4 || !onlyBroker(&r) {
		t.Errorf("%s; %s; %v", r.Summary(), r.Verdict(), r.Found)
	}
}

// The server may be slow. The request that ends the job goes to the connection that has it at the second server.
func TestJobThatTheServerDeliversLate(t *testing.T) {
	t.Parallel()
	s := newScript(t, 3, func(*Options) {})
	s.asks(1, "put 0 0 60 1\r\na\r\n")
	s.says(1, "INSERTED 100\r\n")
	s.asks(2, "reserve\r\n")
	s.until("found", onlyBroker, func() {})
	s.asks(3, "reserve\r\n")
	s.says(3, "RESERVED 100 1\r\na\r\n")
	s.asks(3, "delete 100\r\n")
	s.says(3, "DELETED 0\r\n")
	if r := s.c.Finish(); r.Different != 1 || r.Jobs.OnlyBroker != 0 || r.Jobs.Delivered != 1 || r.Equal != 3 {
		t.Errorf("%s; %s; %v", r.Summary(), r.Verdict(), r.Found)
	}
}

// The second server loses a job: the reverse.
func TestJobThatTheBrokerNeverDelivers(t *testing.T) {
	t.Parallel()
	for _, reversed := range []bool{false, true} {
		forgetful := startTube(t, 20, func(reply string) string {
			if strings.HasPrefix(reply, "RESERVED") {
				return "TIMED_OUT\r\n"
			}
			return reply
		})
		s := newScript(t, 2, func(o *Options) { o.Dial, o.Reversed = dialTo(forgetful), reversed })
		s.asks(1, "put 0 0 60 1\r\na\r\n")
		s.says(1, "INSERTED 100\r\n")
		s.asks(2, "reserve\r\n")
		s.says(2, "RESERVED 100 1\r\na\r\n")
		r := s.c.Finish()
		ids, server := r.Jobs.FromServer, r.Found[0].Server
		if reversed {
			ids, server = r.Jobs.FromBroker, r.Found[0].Broker
		}
		if r.Different != 1 || len(ids) != 1 || !strings.HasPrefix(server, `"RESERVED 100`) {
			t.Errorf("reversed %v: %s; %s; %v", reversed, r.Summary(), r.Verdict(), r.Found)
		}
	}
}

// burst sends more bytes than the limit of 8 KiB: with each request, so that it does not matter how fast the player is.
func (s *script) burst() {
	for range 20 {
		s.asks(1, "put 0 0 60 9000\r\n"+strings.Repeat("x", 9000)+"\r\n")
	}
	for i := range 20 {
		s.says(1, fmt.Sprintf("INSERTED %d\r\n", 100+i))
	}
}

func TestSkippingEndsAfterItsTime(t *testing.T) {
	t.Parallel()
	s := newScript(t, 1, func(o *Options) { o.MaxBytes, o.Renew = 8<<10, func() error { return nil } })
	s.burst()
	s.until("resumed", func(r *Report) bool { return len(r.Gaps) > 0 }, func() {})
}

// A burst above the limit is skipped, and said. Then the comparison goes on with an empty server, and connections have
// the state that they had.
func TestComparisonGoesOnAfterABurst(t *testing.T) {
	t.Parallel()
	var gaps []Gap
	heard := make(chan string, 1000)
	second := func() net.Listener { // one that starts anew
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Error(err)
			return nil
		}
		s := &tubeServer{Listener: ln, next: 20, heard: heard}
		serveTube(t, s)
		return s
	}
	s := newScript(t, 1, func(o *Options) {
		dial := dialTo(second())
		o.times.skip = time.Hour // the test ends it
		o.MaxBytes, o.Dial = 8<<10, func(ctx context.Context) (net.Conn, error) { return dial(ctx) }
		o.Renew = func() error { dial = dialTo(second()); return nil }
		o.Gap = func(g Gap) { gaps = append(gaps, g) }
	})
	s.asks(1, "use mail\r\n")
	s.says(1, "USING mail\r\n")
	s.burst()
	s.c.endSkip()
	s.until("resumed", func(r *Report) bool { return len(r.Gaps) == 1 }, func() {})
	s.asks(1, "put 0 0 60 1\r\na\r\n")
	s.says(1, "INSERTED 200\r\n")
	s.asks(1, "reserve-with-timeout 0\r\n")
	s.says(1, "RESERVED 200 1\r\na\r\n")
	r := s.c.Finish()
	if r.Dropped != "" || r.Different != 0 || r.Jobs.Delivered != 1 || len(gaps) != 1 || gaps[0].Requests == 0 ||
		!strings.Contains(gaps[0].String(), "skipped") || r.Unknown != gaps[0].Requests {
		t.Errorf("%s; %s; %v", r.Summary(), r.Verdict(), gaps)
	}
	close(heard)
	uses := 0
	for line := range heard {
		if strings.HasPrefix(line, "use mail") {
			uses++
		}
	}
	if uses == 0 {
		t.Error("the new connection has not the state of the client's")
	}
}

// recordOpened notes the events of a proxy.
type recordOpened struct{ said chan string }

func (r recordOpened) Watch(e Event) {
	if e.Kind == Opened {
		r.said <- "opened"
	}
}

func TestProxySaysThatTheServerWasRestarted(t *testing.T) {
	t.Parallel()
	first := &tubeServer{Listener: listenOn(t, "127.0.0.2:0"), next: 1} // nobody else takes a port of this address
	serveTube(t, first)
	said := make(chan string, 10)
	ln := listenOn(t, "127.0.0.1:0")
	p := &Proxy{
		Server: first.Addr().String(), Watcher: recordOpened{said},
		Unreachable: func(error) { said <- "unreachable" }, Restarted: func() { said <- "restarted" },
	}
	done := make(chan error, 1)
	go func() { done <- p.Serve(ln) }()
	address := ln.Addr().String()
	talk(t, address, "put 0 0 60 1\r\na")
	_ = first.Close() // the server is gone
	if c, err := net.Dial("tcp", address); err == nil {
		_, _ = c.Read(make([]byte, 1)) // until the proxy has closed it
		_ = c.Close()                  // it was closed
	}
	serveTube(t, &tubeServer{Listener: listenOn(t, first.Addr().String())})
	talk(t, address, "put 0 0 60 1\r\na")
	_ = ln.Close() // ends Serve
	if err := <-done; err != nil {
		t.Error(err)
	}
	close(said)
	var all []string
	for what := range said {
		all = append(all, what)
	}
	if got := strings.Join(all, " "); got != "opened unreachable restarted opened" {
		t.Errorf("said %q", got)
	}
}

func TestLastStateOfEachNameIsRepeated(t *testing.T) {
	t.Parallel()
	var s stateRequests
	for _, name := range []string{"function a", "function b", "client", "function a", "function ", "function c"} {
		s.add(request{state: name})
	}
	var names []string
	for _, r := range s {
		names = append(names, r.state)
	}
	if got := strings.Join(names, ","); got != "client,function ,function c" {
		t.Errorf("repeated %q", got)
	}
}
