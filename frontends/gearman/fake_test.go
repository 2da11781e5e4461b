package gearman

import (
	"net"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/gearman/packet"
)

// fakeBroker returns the replies of a test and records the operations of each call of Do.
type fakeBroker struct {
	do    func(op core.Op) []core.Reply
	push  []core.Reply // returned by the next Do
	asked [][]core.Op
	now   core.Instant
}

func (b *fakeBroker) Open(core.ClientOptions) core.ClientID { return 1 }
func (b *fakeBroker) Close(core.ClientID)                   {}
func (b *fakeBroker) Committed() core.Commit                { return 0 }
func (b *fakeBroker) Stopped() bool                         { return false }
func (b *fakeBroker) Now() core.Instant                     { return b.now }

func (b *fakeBroker) Do(_ core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	b.asked = append(b.asked, append([]core.Op(nil), ops...))
	into, b.push = append(into, b.push...), nil
	for _, op := range ops {
		into = append(into, b.do(op)...)
	}
	return into
}

// fakeOutputLimit is the output above which a fakeConn reports back pressure, in bytes.
const fakeOutputLimit = 1 << 20

// fakeConn is a connection whose client does not read.
type fakeConn struct {
	out     frontends.Outbox
	closing bool
	wakes   int
}

func (c *fakeConn) Out() *frontends.Outbox { return &c.out }
func (c *fakeConn) Backpressured() bool    { return c.out.Len() > fakeOutputLimit }
func (c *fakeConn) Wake()                  { c.wakes++ }
func (c *fakeConn) CloseAfterFlush()       { c.closing = true }
func (c *fakeConn) Abort()                 {}
func (c *fakeConn) FD() int                { return 7 }
func (c *fakeConn) RemoteAddr() net.Addr   { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5} }

// taken removes the output from the outbox and returns it.
func (c *fakeConn) taken() string {
	p := string(c.out.Sendable(0))
	c.out.Sent(len(p))
	return p
}

func testOptions() Options {
	return Options{Handles: core.NewHandleFormat("H:host"), Location: time.UTC}
}

func open(b core.Broker, o Options) (*session, *fakeConn) {
	c := &fakeConn{}
	s, _ := New(access.Unrestricted(b, core.Gearman), o).Open(c).(*session)
	return s, c
}

func join(parts ...any) string {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return string(b)
}

func TestAnswersKeepTheOrderOfTheMessages(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{do: func(op core.Op) []core.Reply {
		switch op := op.(type) {
		case *core.Submit:
			return []core.Reply{{Kind: core.Submitted, Tag: op.Tag, Seq: 5}}
		case *core.Lease:
			return []core.Reply{{Kind: core.NothingReady, Tag: op.Tag}}
		case *core.Sleep:
			return []core.Reply{{Kind: core.Woken, Tag: op.Tag}}
		case *core.Complete:
			return []core.Reply{{Kind: core.Failed, Tag: op.Tag, Err: core.ErrNotHolder}}
		case *core.CreateQueue:
			return []core.Reply{{Kind: core.Accepted, Tag: op.Tag, Commit: 0}}
		}
		return nil
	}}
	s, c := open(b, testOptions())
	in := join(
		request(packet.EchoReq, "1"), request(packet.SubmitJobBg, "f", "", "x"), "version\n",
		request(packet.CanDo, "f"), "create function f\n",
		request(packet.GrabJob), request(packet.Unused), request(packet.PreSleep),
		request(packet.WorkComplete, "H:host:5", ""), request(packet.EchoReq, "2"))
	if n := s.Feed([]byte(in)); n != len(in) {
		t.Fatalf("used %d of %d", n, len(in))
	}
	want := join(
		answer(packet.EchoRes, "1"), answer(packet.JobCreated, "H:host:5"), "OK 1.1.20\n", "OK\r\n",
		answer(packet.NoJob),
		answer(packet.Error, "INVALID_COMMAND", "Command not expected"), answer(packet.Noop),
		answer(packet.Error, "JOB_NOT_FOUND", "Job given in work result not found"), answer(packet.EchoRes, "2"))
	if got := c.taken(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(b.asked) != 1 {
		t.Errorf("%d calls of Do for one Feed", len(b.asked))
	}
}

func TestPushesComeBeforeLaterEchoes(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{push: []core.Reply{{Kind: core.Woken, Tag: 1 << 40}}}
	s, c := open(b, testOptions())
	s.Feed([]byte(request(packet.EchoReq, "1")))
	if got, want := c.taken(), join(answer(packet.Noop), answer(packet.EchoRes, "1")); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestReplyWaitsForItsCommit(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{do: func(op core.Op) []core.Reply {
		submit, _ := op.(*core.Submit)
		return []core.Reply{{Kind: core.Submitted, Tag: submit.Tag, Seq: 5, Commit: 3}}
	}}
	s, c := open(b, testOptions())
	s.Feed([]byte(join(request(packet.EchoReq, "1"), request(packet.SubmitJobBg, "f", "", "x"),
		request(packet.EchoReq, "2"))))
	if got, want := string(c.out.Sendable(2)), string(answer(packet.EchoRes, "1")); got != want {
		t.Errorf("before the commit: %q, want %q", got, want)
	}
	if got := len(c.out.Sendable(3)); got != c.out.Len() {
		t.Errorf("after the commit %d of %d bytes may leave", got, c.out.Len())
	}
}

func TestLongPipelineIsDecidedInSeveralCalls(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{do: func(op core.Op) []core.Reply {
		submit, _ := op.(*core.Submit)
		return []core.Reply{{Kind: core.Submitted, Tag: submit.Tag, Seq: 1}}
	}}
	s, c := open(b, testOptions())
	const jobs = 3*maxPipeline + 1
	var in []byte
	for range jobs {
		in = append(in, request(packet.SubmitJobBg, "f", "u", "x")...)
	}
	s.Feed(in)
	if len(b.asked) != 4 {
		t.Errorf("%d calls of Do", len(b.asked))
	}
	if got, want := c.out.Len(), jobs*len(answer(packet.JobCreated, "H:host:1")); got != want {
		t.Errorf("%d bytes of answers, want %d", got, want)
	}
}

func TestLostFramingEndsTheConnection(t *testing.T) {
	t.Parallel()
	s, c := open(&fakeBroker{}, testOptions())
	in := join(request(packet.EchoReq, "1"), "\x00BAD", request(packet.EchoReq, "2"))
	if n := s.Feed([]byte(in)); n != len(in) || !c.closing {
		t.Errorf("used %d of %d, shut %v", n, len(in), c.closing)
	}
	want := join(answer(packet.EchoRes, "1"), answer(packet.Error, "INVALID_MAGIC", "Request magic expected"))
	if got := c.taken(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// BenchmarkSession measures the packets of the broker's benchmark: a background submission, a grab and a completion.
func BenchmarkSession(b *testing.B) {
	job := &core.Job{Queue: "resize", Body: make([]byte, 256), Origin: core.Gearman}
	replies := make([]core.Reply, 1)
	broker := &countingBroker{reply: func(op core.Op) []core.Reply {
		switch op := op.(type) {
		case *core.Submit:
			replies[0] = core.Reply{Kind: core.Submitted, Tag: op.Tag, Seq: 123456789}
		case *core.Lease:
			replies[0] = core.Reply{Kind: core.Assigned, Tag: op.Tag, Seq: 123456789, Job: job}
		case *core.Complete:
			replies[0] = core.Reply{Kind: core.Accepted, Tag: op.Tag}
		}
		return replies
	}}
	payload := string(make([]byte, 256))
	for _, c := range []struct {
		name string
		in   []byte
	}{
		{"submit", request(packet.SubmitJobBg, "resize", "", payload)},
		{"submit with unique", request(packet.SubmitJobBg, "resize", "5f0f7ff0-5a36-4d0c-8a3e-6a4a3f2b8f3a", payload)},
		{"grab", request(packet.GrabJobUniq)},
		{"complete", request(packet.WorkComplete, "H:host:123456789", "")},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, conn := open(broker, testOptions())
			const pipelined = 16
			var in []byte
			for range pipelined {
				in = append(in, c.in...)
			}
			b.ReportAllocs()
			for i := 0; i < b.N; i += pipelined {
				s.Feed(in)
				conn.out.Sent(conn.out.Len())
			}
		})
	}
}

// countingBroker replies at no cost.
type countingBroker struct {
	fakeBroker
	reply func(op core.Op) []core.Reply
}

func (b *countingBroker) Do(_ core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	for _, op := range ops {
		into = append(into, b.reply(op)...)
	}
	return into
}
