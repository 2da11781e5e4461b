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

// In this order: the client must send HELLO; the client is served; its input is ignored.
const (
	expecting phase = iota
	serving
	ending
)

// session is the state of one connection.
type session struct {
	front     *Frontend
	conn      frontends.Conn
	lines     lineReader
	names     names
	challenge challenge
	phase     phase
	login     *login // the running password check; nil: none

	client   core.ClientID // set by HELLO
	worker   *worker       // nil: a producer
	workerID string        // worker id of the leases

	tag         uint64       // tag of the last operation
	pipeline    *pipeline    // pipeline of the current call; nil between calls
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

// Feed implements frontends.Session.
func (s *session) Feed(in []byte) int {
	used := 0
	for used < len(in) && !s.Blocked() {
		if s.phase == ending {
			used = len(in)
			break
		}
		if used > 0 && s.conn.Out().Len() > frontends.PauseAt {
			s.conn.Wake() // to continue with the rest
			break
		}
		line, n, err := s.lines.next(in[used:])
		used += n
		if errors.Is(err, errShort) {
			break
		}
		if s.pipeline == nil {
			s.begin()
		}
		s.line(line, err)
	}
	if s.pipeline != nil {
		s.end()
	}
	return used
}

// line serves one request line; err is set for one that is too long.
func (s *session) line(line []byte, err error) {
	switch {
	case s.front.stopping.Load():
		s.flush()
		s.refuse("shutdown in progress")
		s.hangUp()
	case err != nil:
		s.flush()
		s.refuse(err.Error())
		if s.phase == expecting {
			s.hangUp()
		}
	case s.phase == expecting:
		s.handshake(line)
	default:
		s.command(s.pipeline, line)
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
	s.begin()
	defer s.end()
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
	frontends.CancelWaits(s.front.broker, s.client)
	s.fetch = parkedFetch{tag: s.pipeline.lease([]string{}, s.workerID, until), until: until, noQueues: true}
	s.flush()
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

// EOF implements frontends.Session. Every whole line has been answered by now; a line without an end is not a request.
func (s *session) EOF([]byte) {}

// Admission implements frontends.Admitter. HELLO is due until it has come; a client has one attempt.
func (s *session) Admission() frontends.Admission {
	switch {
	case s.client != 0:
		return frontends.AdmissionOf(s.front.broker, s.client, frontends.NoRights)
	case s.phase == expecting && s.login == nil:
		return frontends.Admission{Rights: frontends.LoginDue}
	}
	return frontends.Admission{Rights: frontends.NoRights}
}

// Dismiss implements frontends.Admitter.
func (s *session) Dismiss(text string) {
	s.refuse(text)
	s.hangUp()
}

// Blocked implements frontends.Blocker.
func (s *session) Blocked() bool { return s.fetch.tag != 0 || s.running != nil || s.login != nil }

// Stop implements frontends.Stopper: a parked FETCH gets no job, so that the client asks again and learns of the
// shutdown.
func (s *session) Stop() { s.giveUpFetch() }

// giveUpFetch answers a parked FETCH with no job.
func (s *session) giveUpFetch() {
	if s.fetch.tag == 0 {
		return
	}
	frontends.CancelWaits(s.front.broker, s.client)
	s.fetch = parkedFetch{}
	s.put(redcon.AppendNull(s.conn.Out().Buf()), 0)
}

// Closed implements frontends.Session.
func (s *session) Closed() {
	if s.login != nil {
		s.login.dropped.Store(true)
	}
	if s.client == 0 {
		return
	}
	if s.running != nil {
		s.front.detach(s.running, s.front.broker.PrincipalOf(s.client))
	}
	for len(s.lateReplies) > 0 { // more may arrive while jobs are released
		r := s.lateReplies[0]
		s.lateReplies = s.lateReplies[1:]
		if r.Kind == core.Assigned {
			s.ask(&core.Release{Tag: s.nextTag(), Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch})
		}
	}
	s.front.broker.Close(s.client)
	s.client = 0
	s.front.connections.Add(-1)
	if s.worker != nil {
		s.front.workers.leave(s, s.worker)
	}
}

// HandleUnsent implements frontends.UnsentHandler.
func (s *session) HandleUnsent(bytes int) {
	s.deliveries.Release(s.front.broker, s.conn.Out(), bytes)
}

// handshake serves the first line.
func (s *session) handshake(line []byte) {
	h, err := parseHello(line)
	if err != nil {
		s.refuse(err.Error())
		s.hangUp()
		return
	}
	switch f := s.front; {
	case f.opts.Password == "" && !f.broker.Control().HasPasswords():
		s.admit(h, nil)
	case h.PwdHash != "":
		s.startLogin(h)
	case f.admitsWithoutPassword(frontends.PeerCertificate(s.conn)):
		s.admit(h, nil)
	default:
		s.refuseLogin(0)
	}
}

// admit starts to serve a client. p is the principal whose password it has shown; nil: none.
func (s *session) admit(h hello, p *access.Principal) {
	s.phase = serving
	s.lines.max, s.lines.jobMax = min(s.front.opts.MaxLine, maxCommandLine), s.front.opts.MaxLine
	s.openClient(p)
	if h.WID != "" {
		s.worker, s.workerID = s.front.workers.join(s, h, s.front.broker.PrincipalOf(s.client),
			s.front.broker.Now()), h.WID
		if s.worker == nil {
			s.refuseWorker()
			return
		}
	} else {
		s.workerID = "connection-" + strconv.FormatUint(uint64(s.client), 10)
	}
	s.ok(0)
	if n, limit := s.front.connections.Add(1), s.front.opts.MaxConnections; limit > 0 && n > int64(limit) {
		s.refuse(fmt.Sprintf("too many connections: %d", n))
		s.hangUp()
	}
}

// refuseWorker ends a connection whose HELLO names the worker of another principal.
func (s *session) refuseWorker() {
	s.front.broker.CountRefusal()
	s.front.broker.Close(s.client)
	s.client = 0
	s.refuse("worker id belongs to another client")
	s.hangUp()
}

// openClient opens the broker's client of the session, once. p is the principal whose password its client has shown;
// nil: none.
func (s *session) openClient(p *access.Principal) {
	s.client = frontends.OpenClient(s.front.broker, s.conn, p)
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
		s.flush()
	}
	c.run(s, p, arg)
	if p.Len() >= maxPipeline {
		s.flush()
	}
}

// hangUp closes the connection after all answers have been sent.
func (s *session) hangUp() {
	s.phase = ending
	s.conn.CloseAfterFlush()
}

// nextTag returns a new tag for an operation.
func (s *session) nextTag() uint64 {
	s.tag++
	return s.tag
}

// ask runs one operation and returns its reply. Do not use it for leases, because their reply may come later. The
// pipeline must be empty.
func (s *session) ask(op core.Op) core.Reply {
	tag := s.tag // nextTag gave it to op
	answer := core.Reply{Kind: core.Failed, Tag: tag, Err: core.ErrInvalid}
	for _, r := range s.front.broker.Do(s.client, []core.Op{op}, nil) {
		if r.Tag == tag {
			answer = r
		} else {
			s.lateReplies = append(s.lateReplies, r)
		}
	}
	return answer
}

// The following functions write a reply that waits for the commit.

func (s *session) put(b []byte, commit core.Commit) { s.conn.Out().Put(b, commit) }

func (s *session) ok(commit core.Commit) { s.put(redcon.AppendOK(s.conn.Out().Buf()), commit) }

func (s *session) bulk(p []byte, commit core.Commit) {
	s.put(redcon.AppendBulk(s.conn.Out().Buf(), p), commit)
}

// refuse answers with ERR and a text.
func (s *session) refuse(text string) { s.put(appendRefusal(s.conn.Out().Buf(), text), 0) }

// fail answers with an error of the core; name is what the request names. ErrShutdown closes the connection.
func (s *session) fail(err error, name string, commit core.Commit) {
	s.put(redcon.AppendError(s.conn.Out().Buf(), core.CutText(errorText(err, name), maxEcho)), commit)
	if errors.Is(err, core.ErrShutdown) {
		s.hangUp()
	}
}
