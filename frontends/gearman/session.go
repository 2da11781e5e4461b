package gearman

import (
	"broker/core"
	"broker/frontends"
)

// session is one connection: client, worker and administrator at once.
type session struct {
	f      *Frontend
	conn   frontends.Conn
	client core.ClientID
	entry  *connEntry

	names      names
	exceptions bool // the client asked for WORK_EXCEPTION
	closing    bool // no more input is read
	eof        bool // nor will any come
	grabs      int  // how many jobs are leased by one Do, see flush

	round      uint64   // counts batches: the upper bits of every tag
	batch      *batch   // during Feed and Deliver only
	listing    *listing // a text command whose answer takes more than one turn; input waits behind it
	noJobDelay noJobDelay
}

// Bounds of what one connection makes us write at a time.
const (
	pauseAt     = 256 << 10 // bytes written before it matters whether the client takes them
	maxGrabs    = 16
	largeOutput = 1 << 20 // bytes
	largeInput  = 1 << 20 // bytes that are decided at once, whole messages aside
)

// tagBits of a tag are the place in the batch.
const tagBits = 16

// Feed implements frontends.Session.
func (s *session) Feed(in []byte) int {
	if s.closing {
		return len(in)
	}
	s.begin()
	defer s.end()
	s.interruptDelay()
	used, decided := 0, 0
	for !s.closing && s.listing == nil && !s.outputFull() {
		n, err := decode(in[used:], s.f.o.MaxBodyBytes, &s.batch.msg)
		if err != nil {
			s.refuseSyntax(err)
		} else if n == 0 {
			break
		} else {
			s.run(&s.batch.msg)
		}
		used += n
		if s.batch.full() || s.batch.leases.used >= s.grabs || used-decided > largeInput {
			s.flush(used == len(in))
			decided = used
		}
	}
	s.flush(used == len(in))
	if used == len(in) {
		s.noJobDelay.asked = false
	}
	if s.closing {
		s.conn.CloseAfterFlush()
		return len(in)
	}
	return used
}

// Deliver implements frontends.Session.
func (s *session) Deliver() {
	s.begin()
	defer s.end()
	if s.listing != nil && !s.page() {
		return
	}
	s.fetch()
}

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte {
	return appendPacket(nil, errorRes, errServerStopped.code, errServerStopped.message)
}

// EOF implements frontends.Session: what was asked for before the client stopped sending is answered.
func (s *session) EOF(in []byte) {
	s.eof = true
	if s.listing != nil {
		s.Deliver()
	}
	s.Feed(in)
	s.closing = true
}

// Closed implements frontends.Session.
func (s *session) Closed() {
	s.closing, s.listing = true, nil
	s.f.workers.remove(s.entry)
	s.f.broker.Close(s.client)
}

// begin takes a batch; end gives it back.
func (s *session) begin() { s.batch, _ = s.f.batches.Get().(*batch) }

func (s *session) end() {
	s.batch.reset()
	s.round++
	s.f.batches.Put(s.batch)
	s.batch = nil
}

// run does one message.
func (s *session) run(m *message) {
	switch {
	case m.text:
		s.runLine(m.line)
	case commands[m.typ] == nil:
		s.refuse(&errNoRequest)
	default:
		commands[m.typ](s, m)
	}
}

// await notes that a message must be answered, and gives the tag for its operation.
func (s *session) await(w wait) (tag uint64) {
	b := s.batch
	b.waits = append(b.waits, w)
	return s.tagOf(len(b.waits) - 1)
}

// tagOf is the tag of the message at a place in the batch.
func (s *session) tagOf(at int) uint64 { return s.round<<tagBits | uint64(at) } //nolint:gosec // not negative

// ask adds an operation.
func (s *session) ask(op core.Op) { s.batch.ops = append(s.batch.ops, op) }

// refuse answers the message at hand with an ERROR packet.
func (s *session) refuse(e *wireError) { s.await(wait{kind: forError, err: e}) }

// refuseSyntax answers what is no message; where the next one begins is unknown, the connection ends.
func (s *session) refuseSyntax(e *syntaxError) {
	s.closing = e.lost
	if e == errResult {
		s.failOversized(&s.batch.msg)
	}
	if e.text {
		s.say("ERR " + e.code + " " + e.message + "\r\n")
		return
	}
	s.refuse(&wireError{code: e.code, message: e.message})
}

// say answers the message at hand with text.
func (s *session) say(text string) { s.await(wait{kind: forText, arg: []byte(text)}) }

// flush has the collected operations decided and writes every answer; drained says that the client has said no more. How
// many jobs the next round may lease depends on how much this one brought: a worker that asks for many at once must not
// have many large ones in memory.
func (s *session) flush(drained bool) {
	b := s.batch
	if drained {
		s.delayNoJob()
	}
	before := s.conn.Out().Len()
	if len(b.ops) > 0 || len(b.waits) > 0 {
		s.fetch() // without operations too: what the client was to be told before it asked stands before its answer
	}
	s.tell(len(b.waits))
	if b.leases.used > 0 {
		s.grabs = min(2*s.grabs, maxGrabs)
		if s.conn.Out().Len()-before > largeOutput {
			s.grabs = 1
		}
	}
	b.reset()
	s.round++
}

// crowded reports that so much waits for the client to read that its next messages must wait too.
func (s *session) outputFull() bool {
	return s.conn.Out().Len() > pauseAt && !s.eof && s.conn.Backpressured()
}

// fetch calls the broker with the operations of the batch, if any, and writes its replies.
func (s *session) fetch() {
	b := s.batch
	b.replies = s.f.broker.Do(s.client, b.ops, b.replies[:0])
	for i := range b.replies {
		s.reply(&b.replies[i])
	}
}

// noWait stands for the message behind a reply that nobody asked for just now.
var noWait wait

// reply writes what a reply is in Gearman, after what was answered here before its operation.
func (s *session) reply(r *core.Reply) {
	w := &noWait
	if grab := s.endDelay(r); grab != 0 && r.Tag>>tagBits != s.round {
		w = &s.batch.delayed
		w.typ = grab
	} else if r.Tag>>tagBits == s.round {
		if at := int(r.Tag & (1<<tagBits - 1)); at < len(s.batch.waits) {
			s.tell(at)
			w = &s.batch.waits[at]
		}
	}
	if w.kind == forNobody {
		return
	}
	out := s.conn.Out()
	out.Put(s.encode(out.Buf(), r, w), r.Commit)
}

// tell writes the answers that need no broker of the messages in front of the one at place upTo.
func (s *session) tell(upTo int) {
	b := s.batch
	out := s.conn.Out()
	for ; b.told < upTo; b.told++ {
		w := &b.waits[b.told]
		switch w.kind {
		case forBroker, forNobody:
		case forEcho:
			out.Put(appendPacket(out.Buf(), w.typ, w.arg), 0)
		case forUnknownStatus:
			out.Put(appendStatus(out.Buf(), w.arg, nil), 0)
		case forError:
			out.Put(appendPacket(out.Buf(), errorRes, w.err.code, w.err.message), 0)
		case forText:
			out.Write(w.arg)
		}
	}
}
