package engine

import (
	"errors"

	"broker/core"
)

// A leader that was paused does not know that it was replaced, so what it decides on its own is nothing that a client may rely
// on: a submission that joins a waiting job, a heartbeat, a look at a job, a lease that nobody waits to be committed. Such a reply
// leaves at once if no other member can lead at this moment, which is after the decision. Else it rests on the open batch, which
// is appended to the replicated log even if it is empty: only the leader can commit that. A reply that rests on the open batch
// anyway needs nothing else; one that rests on the batch in flight does, since that was appended before the decision.

// confirmLocked makes replies that were just taken for a client rest on the open batch, unless this engine is certain to lead.
func (e *Engine) confirmLocked(id core.ClientID, replies []core.Reply) {
	if len(replies) == 0 || e.opts.Replicated.holds() {
		return
	}
	rests := false
	for i := range replies {
		if r := &replies[i]; reveals(r) {
			r.Commit, rests = e.machine.Open(), true
		}
	}
	if rests {
		e.machine.RestOn(id, e.machine.Open())
	}
}

// reveals reports whether a client learns something from a reply. That there is no job now, that it should ask again, or that this
// engine has stopped, is nothing.
func reveals(r *core.Reply) bool {
	if r.Kind == core.Failed {
		return !errors.Is(r.Err, core.ErrStopped) && !errors.Is(r.Err, core.ErrShutdown)
	}
	return r.Kind != core.NothingReady && r.Kind != core.TimedOut && r.Kind != core.Woken
}
