package engine

import (
	"errors"

	"broker/core"
)

// A paused leader does not know that another node has replaced it. Clients must not rely on anything that it decides
// without a commit: a submission that joins a waiting job, a heartbeat, an inspection, or a lease whose reply does not
// wait for its commit. Such a reply leaves at once if, after the decision, no other member can lead yet. Otherwise it
// waits for the open batch, which is appended to the replicated log even if it is empty: only the leader can commit it.
// A reply that already waits for the open batch needs nothing else. A reply that waits for the batch in flight does,
// because that batch was appended before the decision.

// confirmLocked makes the given replies to a client wait for the open batch, unless this engine is certain to lead.
func (e *Engine) confirmLocked(id core.ClientID, replies []core.Reply) {
	if len(replies) == 0 || e.opts.Replicated.holds() {
		return
	}
	depends := false
	for i := range replies {
		if r := &replies[i]; reveals(r) {
			r.Commit, depends = e.machine.Open(), true
		}
	}
	if depends {
		e.machine.DependOn(id, e.machine.Open())
	}
}

// reveals reports whether a reply tells the client something about jobs. Replies that there is no job now, that the
// client should ask again, or that this engine has stopped do not.
func reveals(r *core.Reply) bool {
	if r.Kind == core.Failed {
		return !errors.Is(r.Err, core.ErrStopped) && !errors.Is(r.Err, core.ErrShutdown)
	}
	return r.Kind != core.NothingReady && r.Kind != core.TimedOut && r.Kind != core.Woken
}
