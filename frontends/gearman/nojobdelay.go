package gearman

import (
	"broker/core"
	"broker/frontends/gearman/packet"
)

// noJobDelay is the state of a grab that waits a short time for a job before NO_JOB is sent.
type noJobDelay struct {
	grab packet.Type // its packet type; zero: no grab waits
	tag  uint64
	busy bool // the worker has had a job since the last NO_JOB

	// A worker that grabs again before the answer processes several jobs in parallel. Its grabs never wait: after
	// NO_JOB it sleeps, and when woken it grabs as many jobs as it can process.
	parallel bool
	grabbed  bool // a grab has arrived or waited since the input was last empty

	// The grabs of a connection that also submits jobs never wait. Such a client may disconnect after its result, and
	// some clients do not accept other packets then.
	submitted bool
}

var cancelLease core.CancelLease

// interruptDelay ends the delay when there is more input, since answers keep the order of the messages.
func (s *session) interruptDelay() {
	if s.noJobDelay.grab != 0 {
		s.noJobDelay.grabbed = true // the input may be a grab
		s.ask(&cancelLease)
	}
}

// noteGrab is called for each grab.
func (d *noJobDelay) noteGrab() {
	d.parallel = d.parallel || d.grabbed
	d.grabbed = true
}

// delayNoJob lets the last message wait if it is a grab.
func (s *session) delayNoJob() {
	d := &s.noJobDelay
	if s.front.opts.NoJobDelay == 0 || !d.busy || d.parallel || d.submitted || s.HalfClosed {
		return
	}
	p, tag, op := s.Pipeline.Last()
	if lease, ok := op.(*core.Lease); ok && lease.Tag == tag {
		lease.Deadline = s.front.broker.Now().Add(s.front.opts.NoJobDelay)
		d.grab, d.tag = p.typ, tag
	}
}

// endDelay notes the answer to a grab. It returns the packet type of the grab that has waited for this answer, zero for
// none.
func (s *session) endDelay(r *core.Reply) (grab packet.Type) {
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
