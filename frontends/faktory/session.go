package faktory

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends"
)

// fetchFor is how long FETCH waits for a job: clients give up reading after five seconds.
const fetchFor = 2 * time.Second

// phase is how far a connection is.
type phase uint8

// The client has to say HELLO; it is served; nothing it says is heard any more.
const (
	expecting phase = iota
	serving
	ending
)

// session is what one connection remembers.
type session struct {
	f         *Frontend
	conn      frontends.Conn
	lines     lineReader
	names     names
	challenge challenge
	phase     phase

	client core.ClientID // from HELLO on
	worker *worker       // nil: a producer
	holder string        // whose name the leases bear

	tag     uint64       // of the last operation
	fetch   uint64       // tag of the lease that is parked; zero: none
	until   core.Instant // when the last lease stops waiting
	idling  bool         // the parked lease waits for nothing: the worker is on its way out
	late    []core.Reply // came while something else was asked
	running task         // a long command between two of its pages; nil: none

	queuesText string   // the argument of the last FETCH, and
	queues     []string // the core's queues that it names

	written   uint64 // bytes given to the outbox
	delivered []delivery

	helloBy core.Instant // guarded by being set before the registry knows the session
	greeted atomic.Bool  // the handshake is over, or the connection is; read by the registry
}

// delivery is a job whose bytes were written, to be given back if they have not left when the connection ends.
type delivery struct {
	seq   uint64
	epoch uint32
	end   uint64 // where its reply ends, in bytes written
}

// Feed implements frontends.Session.
func (s *session) Feed(in []byte) int {
	used := 0
	var b *scratch
	for used < len(in) && s.fetch == 0 && s.running == nil {
		if s.phase == ending {
			used = len(in)
			break
		}
		if used > 0 && s.conn.Out().Len() > enoughOutput {
			s.conn.Wake() // then the rest
			break
		}
		line, n, err := s.lines.next(in[used:])
		used += n
		if errors.Is(err, errShort) {
			break
		}
		if b == nil {
			b = s.f.borrow()
		}
		switch {
		case s.f.stopping.Load():
			s.flush(b)
			s.refuse("shutdown in progress")
			s.end()
		case err != nil: // too long
			s.flush(b)
			s.refuse(err.Error())
			if s.phase == expecting {
				s.end()
			}
		case s.phase == expecting:
			s.greet(line)
		default:
			s.command(b, line)
		}
	}
	if b != nil {
		s.flush(b)
		s.f.giveBack(b)
	}
	return used
}

// Deliver implements frontends.Session.
func (s *session) Deliver() {
	if s.fetch != 0 {
		b := s.f.borrow()
		b.replies = s.f.b.Do(s.client, nil, b.replies[:0])
		s.settle(b)
		s.f.giveBack(b)
	}
	if s.fetch != 0 && !s.idling && s.dismissed() && s.conn.Out().Held() == 0 {
		s.idle()
	}
	if s.running != nil {
		s.proceed()
	}
}

// dismissed reports that the worker must get no more jobs.
func (s *session) dismissed() bool {
	return s.worker != nil && WorkerState(s.worker.state.Load()) != Running
}

// idle turns a parked FETCH of a worker that has been told to go into one that waits for nothing. A lease cannot be
// called back, so the client changes its name; that is done while no reply is held, for commits are announced to the
// old name only.
func (s *session) idle() {
	s.f.b.Close(s.client)
	s.openClient()
	s.fetch = 0
	b := s.f.borrow()
	b.fetch(s.lease([]string{}, s.until))
	s.flush(b)
	s.f.giveBack(b)
}

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte { return []byte("-" + errorText(core.ErrStopped, "") + "\r\n") }

var _ frontends.HalfCloseWaiter = (*session)(nil)

// WaitsHalfClosed implements frontends.HalfCloseWaiter. The client may be gone, so a parked FETCH gets no job. A long command
// is still answered.
func (s *session) WaitsHalfClosed() bool {
	if s.fetch != 0 {
		s.giveUpFetch()
	}
	return s.running != nil
}

// EOF implements frontends.Session. Every whole line has been answered by now; a line without an end is not a request.
func (s *session) EOF([]byte) {}

// Blocked implements frontends.Blocker.
func (s *session) Blocked() bool { return s.fetch != 0 || s.running != nil }

// Stop implements frontends.Stopper: clients that are told of nothing ask again, and find out.
func (s *session) Stop() {
	if s.fetch != 0 {
		s.giveUpFetch()
	}
}

// giveUpFetch answers a parked FETCH with nothing, at the end of a connection.
func (s *session) giveUpFetch() {
	s.f.b.Close(s.client)
	s.openClient()
	s.fetch = 0
	s.put(redcon.AppendNull(s.conn.Out().Buf()), 0)
}

// Closed implements frontends.Session.
func (s *session) Closed() {
	s.greeted.Store(true)
	if s.client == 0 {
		return
	}
	if s.running != nil {
		s.f.detach(s.running)
	}
	for len(s.late) > 0 { // what comes while jobs are released is late as well
		r := s.late[0]
		s.late = s.late[1:]
		if r.Kind == core.Assigned {
			s.release(r.Seq, r.Lease.Epoch)
		}
	}
	s.f.b.Close(s.client)
	s.client = 0
	s.f.connections.Add(-1)
	if s.worker != nil {
		s.f.workers.leave(s, s.worker)
	}
}

var _ frontends.UnsentHandler = (*session)(nil)

// Lost implements frontends.UnsentHandler: a job whose bytes have not left as a whole goes to the next worker.
func (s *session) HandleUnsent(bytes int) {
	for _, d := range s.delivered {
		if d.end+uint64(bytes) <= s.written { //nolint:gosec // a length
			continue
		}
		if s.client == 0 {
			s.client = s.f.b.Open(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}})
		}
		s.release(d.seq, d.epoch)
	}
	if s.client != 0 {
		s.f.b.Close(s.client)
		s.client = 0
	}
}

// release gives a lease back that no worker knows of.
func (s *session) release(seq uint64, epoch uint32) {
	s.ask(&core.Release{Tag: s.nextTag(), Ref: core.Ref{Seq: seq}, Epoch: epoch})
}

// greet takes the first line.
func (s *session) greet(line []byte) {
	h, err := parseHello(line)
	if err != nil {
		s.refuse(err.Error())
		s.end()
		return
	}
	if s.f.o.Password != "" && !s.challenge.admits(h, s.f.o.Password) {
		s.refuse("Invalid password")
		s.end()
		return
	}
	s.phase = serving
	s.lines.max, s.lines.jobMax = min(s.f.o.MaxLine, maxCommandLine), s.f.o.MaxLine
	s.greeted.Store(true)
	s.openClient()
	if h.WID != "" {
		s.worker, s.holder = s.f.workers.join(s, h, s.f.b.Now()), h.WID
	} else {
		s.holder = "connection-" + strconv.FormatUint(uint64(s.client), 10)
	}
	s.ok(0)
	if n, limit := s.f.connections.Add(1), s.f.o.MaxConnections; limit > 0 && n > int64(limit) {
		s.refuse(fmt.Sprintf("too many connections: %d", n))
		s.end()
	}
}

func (s *session) openClient() {
	s.client = s.f.b.Open(frontends.ClientOptions(core.Faktory, s.conn))
}

// command serves one request.
func (s *session) command(b *scratch, line []byte) {
	verb, arg, bare := splitVerb(line)
	c, known := commands[string(verb)]
	if !known {
		s.flush(b)
		s.refuse(fmt.Sprintf("unknown command %s", verb))
		return
	}
	b.commands++
	if !c.batched {
		s.flush(b)
	}
	if bare && c.bare != "" {
		s.flush(b)
		s.refuse(c.bare)
		return
	}
	c.run(s, b, arg)
	if len(b.ops) >= maxOps {
		s.flush(b)
	}
}

// end closes the connection once everything written has been sent.
func (s *session) end() {
	s.phase = ending
	s.conn.CloseAfterFlush()
}

// nextTag is a new number for an operation.
func (s *session) nextTag() uint64 {
	s.tag++
	return s.tag
}

// ask has one operation decided and returns its reply; everything but a lease is answered at once. Operations that were
// collected before must have been flushed.
func (s *session) ask(op core.Op) core.Reply {
	tag := s.tag // the last one given out is op's
	answer := core.Reply{Kind: core.Failed, Tag: tag, Err: core.ErrInvalid}
	for _, r := range s.f.b.Do(s.client, []core.Op{op}, nil) {
		if r.Tag == tag {
			answer = r
		} else {
			s.late = append(s.late, r)
		}
	}
	return answer
}

// The writers of replies. Each gives the outbox the commit that the reply rests on.

func (s *session) put(b []byte, commit core.Commit) {
	out := s.conn.Out()
	s.written += uint64(len(b) - out.Len())
	out.Put(b, commit)
}

func (s *session) ok(commit core.Commit) { s.put(redcon.AppendOK(s.conn.Out().Buf()), commit) }

func (s *session) bulk(p []byte, commit core.Commit) {
	s.put(redcon.AppendBulk(s.conn.Out().Buf(), p), commit)
}

// refuse reports a client's mistake.
func (s *session) refuse(text string) { s.put(appendRefusal(s.conn.Out().Buf(), text), 0) }

// fail reports a refusal of the core's; name is what the client had asked about. Once the broker is going, so is the
// connection.
func (s *session) fail(err error, name string, commit core.Commit) {
	s.put(redcon.AppendError(s.conn.Out().Buf(), cut(errorText(err, name), maxEcho)), commit)
	if errors.Is(err, core.ErrShutdown) {
		s.end()
	}
}
