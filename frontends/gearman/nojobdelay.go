package gearman

import "broker/core"

// noJobDelay is about the grab that waits for its job.
type noJobDelay struct {
	grab packetType // its form; zero: none waits
	tag  uint64
	busy bool // the worker has had a job since it was last told that there is none

	// A worker that asks again before it is answered does several jobs at a time. It never waits: told that there is
	// none, it asks for as many as it can do at the next wake-up, and so keeps them all in hand; held back, it would go
	// on with the one.
	parallel bool
	grabbed   bool // a grab came, or was being waited for, since the input was last taken to its end

	// A connection that submits jobs too never waits. It may be done once it has its result, and not every client can
	// bear what comes after that.
	submitted bool
}

var cancelLease core.CancelLease

// interruptDelay ends the wait because the worker has more to say: answers keep the order of the messages.
func (s *session) interruptDelay() {
	if s.noJobDelay.grab != 0 {
		s.noJobDelay.grabbed = true // it may be the beginning of a grab
		s.ask(&cancelLease)
	}
}

// noteGrab is told of each grab.
func (l *noJobDelay) noteGrab() {
	l.parallel = l.parallel || l.grabbed
	l.grabbed = true
}

// delayNoJob lets the grab wait that is the last thing that the worker has said.
func (s *session) delayNoJob() {
	l := &s.noJobDelay
	if s.f.o.NoJobDelay == 0 || !l.busy || l.parallel || l.submitted || s.eof {
		return
	}
	p, tag, op := s.pipeline.Last()
	if lease, ok := op.(*core.Lease); ok && lease.Tag == tag {
		lease.Deadline = s.f.broker.Now().Add(s.f.o.NoJobDelay)
		l.grab, l.tag = p.typ, tag
	}
}

// endDelay notes the answer to a grab, and returns the form of the one that has waited for this answer, if one has.
func (s *session) endDelay(r *core.Reply) (grab packetType) {
	switch {
	case r.Kind == core.Assigned:
		s.noJobDelay.busy = true
	case r.Kind == core.NothingReady || r.Kind == core.TimedOut:
		s.noJobDelay.busy = false
	}
	if s.noJobDelay.grab != 0 && s.noJobDelay.tag == r.Tag {
		grab, s.noJobDelay.grab = s.noJobDelay.grab, 0
	}
	return grab
}
