package gearman

import "broker/core"

// linger is about the grab that waits for its job.
type linger struct {
	grab packetType // its form; zero: none waits
	tag  uint64
	busy bool // the worker has had a job since it was last told that there is none

	// A worker that asks again before it is answered does several jobs at a time. It never waits: told that there is
	// none, it asks for as many as it can do at the next wake-up, and so keeps them all in hand; held back, it would go
	// on with the one.
	several bool
	asked   bool // a grab came, or was being waited for, since the input was last taken to its end

	// A connection that submits jobs too never waits. It may be done once it has its result, and not every client can
	// bear what comes after that.
	submits bool
}

var withdraw core.CancelLease

// interruptLinger ends the wait because the worker has more to say: answers keep the order of the messages.
func (s *session) interruptLinger() {
	if s.linger.grab != 0 {
		s.linger.asked = true // it may be the beginning of a grab
		s.ask(&withdraw)
	}
}

// noteGrab is told of each grab.
func (l *linger) noteGrab() {
	l.several = l.several || l.asked
	l.asked = true
}

// startLinger lets the grab wait that is the last thing that the worker has said.
func (s *session) startLinger() {
	b := s.batch
	l := &s.linger
	if s.f.o.Linger == 0 || !l.busy || l.several || l.submits || s.eof || len(b.ops) == 0 {
		return
	}
	op, ok := b.ops[len(b.ops)-1].(*core.Lease)
	if last := len(b.waits) - 1; ok && op.Tag == s.tagOf(last) {
		op.Deadline = s.f.broker.Now().Add(s.f.o.Linger)
		s.linger.grab, s.linger.tag = b.waits[last].typ, op.Tag
	}
}

// endLinger notes the answer to a grab, and returns the form of the one that has waited for this answer, if one has.
func (s *session) endLinger(r *core.Reply) (grab packetType) {
	switch {
	case r.Kind == core.Assigned:
		s.linger.busy = true
	case r.Kind == core.NothingReady || r.Kind == core.TimedOut:
		s.linger.busy = false
	}
	if s.linger.grab != 0 && s.linger.tag == r.Tag {
		grab, s.linger.grab = s.linger.grab, 0
	}
	return grab
}
