package faktory

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// fetchFor is the time that FETCH waits for a job. Clients time out after five seconds.
const fetchFor = 2 * time.Second

// phase is the state of a connection.
type phase uint8

// In this order: the client must send HELLO; the client is served.
const (
	expecting phase = iota
	serving
)

// session is the state of one connection.
type session struct {
	frontends.Pipelined[pending, *pipeline] // its client is opened by HELLO
	front                                   *Frontend

	lines     lineReader
	names     names
	challenge challenge
	phase     phase
	login     *login // the running password check; nil: none

	number   uint64  // of its client, also once that is closed; the leader knows the connection by it
	worker   *worker // nil: a producer
	workerID string  // worker id of the leases
	version  string  // of the worker's program; empty: unknown

	fetch       parkedFetch  // the FETCH that waits for a job
	lateReplies []core.Reply // replies that arrived during ask
	stops       *stopQuery   // nil until the first heartbeat
	running     task         // a long command between two steps; nil: none

	queuesText string   // the argument of the last FETCH
	queues     []string // the core's names for these queues

	deliveries frontends.Deliveries
}

// parkedFetch is a FETCH that waits for a job.
type parkedFetch struct {
	tag      uint64 // zero: none
	until    core.Instant
	reading  bool // its job is being read from disk
	noQueues bool // it gets no job, because the worker is quiet or terminating
}

var (
	_ frontends.Session         = (*session)(nil)
	_ frontends.Blocker         = (*session)(nil)
	_ frontends.HalfCloseWaiter = (*session)(nil)
	_ frontends.UnsentHandler   = (*session)(nil)
	_ frontends.Stopper         = (*session)(nil)
	_ frontends.Admitter        = (*session)(nil)

	_ frontends.Responder[pending] = (*session)(nil)
)

// newSession makes the session of a connection.
func newSession(f *Frontend, c frontends.Conn) *session {
	s := &session{front: f, lines: lineReader{max: maxHelloBytes}}
	s.Conn, s.Broker = c, f.broker
	s.Init(s, &f.pipelines, maxPipeline)
	return s
}

// Step implements frontends.Requests: it serves the first request line of the input.
func (s *session) Step(in []byte) (used int, more bool) {
	line, n, err := s.lines.next(in)
	if errors.Is(err, errShort) {
		return n, false
	}
	s.line(line, err)
	return n, true
}

// line serves one request line; err is set for one that is too long.
func (s *session) line(line []byte, err error) {
	switch {
	case s.front.stopping.Load():
		s.Flush()
		s.refuse("shutdown in progress")
		s.HangUp()
	case err != nil:
		s.Flush()
		s.refuse(err.Error())
		if s.phase == expecting {
			s.HangUp()
		}
	case s.phase == expecting:
		s.handshake(line)
	default:
		s.command(s.Pipeline, line)
	}
}

// Deliver implements frontends.Session.
func (s *session) Deliver() {
	if s.login != nil {
		if s.login.done.Load() {
			s.finishLogin()
		}
		return
	}
	if !s.Blocked() {
		return
	}
	s.Begin()
	defer s.End()
	defer s.Flush()
	if s.fetch.tag != 0 {
		s.run()
	}
	if s.fetch.tag != 0 && !s.fetch.noQueues && !s.fetch.reading && s.isQuiet() {
		s.fetchNothing()
	}
	if s.running != nil {
		s.proceed()
	}
}

// isQuiet reports whether the worker is quiet or terminating and gets no more jobs.
func (s *session) isQuiet() bool {
	return s.worker != nil && workerState(s.worker.state.Load()) != running
}

// fetchNothing replaces the parked FETCH of a quiet or terminating worker with one that waits but gets no job.
func (s *session) fetchNothing() {
	until := s.fetch.until
	s.CancelWaits()
	s.fetch = parkedFetch{tag: s.Pipeline.lease([]string{}, s, until), until: until, noQueues: true}
	s.Flush()
}

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte { return []byte("-" + errorText(core.ErrStopped, "") + "\r\n") }

// WaitsHalfClosed implements frontends.HalfCloseWaiter. The client may be gone, so a parked FETCH gets no job. A long
// command is still answered.
func (s *session) WaitsHalfClosed() bool {
	if s.login != nil || s.fetch.reading {
		return true // a job that was read from memory would have been sent already
	}
	s.giveUpFetch()
	return s.running != nil
}

// Admission implements frontends.Admitter. HELLO is due until it has come; a client has one attempt.
func (s *session) Admission() frontends.Admission {
	switch {
	case s.Client != 0:
		return s.Peer.Admission()
	case s.phase == expecting && s.login == nil:
		return frontends.Admission{Rights: frontends.LoginDue}
	}
	return frontends.Admission{Rights: frontends.NoRights}
}

// Dismiss implements frontends.Admitter.
func (s *session) Dismiss(text string) {
	s.refuse(text)
	s.HangUp()
}

// Blocked implements frontends.Blocker.
func (s *session) Blocked() bool { return s.fetch.tag != 0 || s.running != nil || s.login != nil }

// Unblock implements frontends.Requests. A password check and a long command end before EOF.
func (s *session) Unblock() { s.giveUpFetch() }

// Stop implements frontends.Stopper: a parked FETCH gets no job, so that the client asks again and learns of the
// shutdown.
func (s *session) Stop() { s.giveUpFetch() }

// giveUpFetch answers a parked FETCH with no job.
func (s *session) giveUpFetch() {
	if s.fetch.tag == 0 {
		return
	}
	s.CancelWaits()
	s.fetch = parkedFetch{}
	s.put(redcon.AppendNull(s.Conn.Out().Buf()), 0)
}

// Closed implements frontends.Session.
func (s *session) Closed() {
	if s.login != nil {
		s.login.dropped.Store(true)
	}
	if s.Client == 0 {
		return
	}
	if s.running != nil {
		s.front.detach(s.running, s.Principal())
	}
	for len(s.lateReplies) > 0 { // more may arrive while jobs are released
		r := s.lateReplies[0]
		s.lateReplies = s.lateReplies[1:]
		if r.Kind == core.Assigned {
			s.ask(&core.Release{Tag: s.NextTag(), Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch})
		}
	}
	s.front.broker.Close(s.Client)
	s.Client = 0
	s.leave()
}

// HandleUnsent implements frontends.UnsentHandler.
func (s *session) HandleUnsent(bytes int) {
	s.deliveries.Release(s.front.broker, s.Conn.Out(), bytes)
}

// handshake serves the first line.
func (s *session) handshake(line []byte) {
	h, err := parseHello(line)
	if err != nil {
		s.refuse(err.Error())
		s.HangUp()
		return
	}
	switch f := s.front; {
	case f.opts.Password == "" && !f.broker.Control().HasPasswords():
		s.admit(h, nil)
	case h.PwdHash != "":
		s.startLogin(h)
	case f.admitsWithoutPassword(frontends.PeerCertificate(s.Conn)):
		s.admit(h, nil)
	default:
		s.refuseLogin(0)
	}
}

// admit starts to serve a client. p is the principal whose password it has shown; nil: none.
func (s *session) admit(h hello, p *access.Principal) {
	s.phase = serving
	s.lines.max, s.lines.jobMax = min(s.front.opts.MaxBodyBytes, maxCommandLine), s.front.opts.MaxBodyBytes
	s.openClient(p)
	s.version = h.version()
	n, ok := s.enter(h)
	if !ok {
		s.refuseWorker()
		return
	}
	if s.workerID = h.WID; s.workerID == "" {
		s.workerID = "connection-" + strconv.FormatUint(s.number, 10)
	}
	s.ok(0)
	if limit := s.front.opts.MaxConnections; limit > 0 && n > int64(limit) {
		s.refuse(fmt.Sprintf("too many connections: %d", n))
		s.HangUp()
	}
}

// refuseWorker ends a connection whose HELLO names the worker of another principal.
func (s *session) refuseWorker() {
	s.front.broker.CountRefusal()
	s.front.broker.Close(s.Client)
	s.Client = 0
	s.refuse("worker id belongs to another client")
	s.HangUp()
}

// openClient opens the broker's client of the session, once. p is the principal whose password its client has shown;
// nil: none.
func (s *session) openClient(p *access.Principal) {
	s.Client = frontends.OpenClient(s.front.broker, s.Conn, p)
	s.number = uint64(s.Client)
}

// command serves one request.
func (s *session) command(p *pipeline, line []byte) {
	verb, arg, bare := splitVerb(line)
	c, known := commands[string(verb)]
	if !known {
		p.refuse(fmt.Sprintf("unknown command %s", verb))
		return
	}
	p.commands++
	if bare && c.bare != "" {
		p.refuse(c.bare)
		return
	}
	if !c.batched {
		s.Flush()
		p.MarkDue()
	}
	c.run(s, p, arg)
}

// ask runs one operation and returns its reply. Do not use it for leases, because their reply may come later. The
// pipeline must be empty.
func (s *session) ask(op core.Op) core.Reply {
	tag := s.Tag // NextTag gave it to op
	answer := core.Reply{Kind: core.Failed, Tag: tag, Err: core.ErrInvalid}
	for _, r := range s.front.broker.Do(s.Client, []core.Op{op}, nil) {
		if r.Tag == tag {
			answer = r
		} else {
			s.lateReplies = append(s.lateReplies, r)
		}
	}
	return answer
}

// The following functions write a reply that waits for the commit.

func (s *session) put(b []byte, commit core.Commit) { s.Conn.Out().Put(b, commit) }

func (s *session) ok(commit core.Commit) { s.put(redcon.AppendOK(s.Conn.Out().Buf()), commit) }

func (s *session) bulk(p []byte, commit core.Commit) {
	s.put(redcon.AppendBulk(s.Conn.Out().Buf(), p), commit)
}

// refuse answers with ERR and a text.
func (s *session) refuse(text string) { s.put(appendRefusal(s.Conn.Out().Buf(), text), 0) }

// fail answers with an error of the core; name is what the request names. ErrShutdown closes the connection.
func (s *session) fail(err error, name string, commit core.Commit) {
	s.put(redcon.AppendError(s.Conn.Out().Buf(), core.CutText(errorText(err, name), maxEcho)), commit)
	if errors.Is(err, core.ErrShutdown) {
		s.HangUp()
	}
}
