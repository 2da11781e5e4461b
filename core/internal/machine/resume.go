package machine

import (
	"maps"
	"slices"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// When another node becomes the leader, clients of the other nodes continue there with what only the memory of the
// earlier leader had: leases of connections, and jobs whose clients wait for the result. Until Settle, a leader decides
// nothing about leases that the earlier leader's connections had.

// submitAgain continues a submission that an earlier leader had admitted. It reports whether it has replied; otherwise
// the job must be admitted under its number.
func (m *Machine) submitAgain(c *client, op *core.Submit) (replied bool) {
	seq := op.Job.Seq
	h := m.table.Handle(seq)
	switch {
	case m.list != nil, seq == 0 || seq >= m.table.NextSeq:
		m.stopsHere(c, op.Tag, nil, core.ErrInvalid)
		return true
	case h != 0:
		m.coalesce(c, op, h)
		return true
	case op.Again == core.AgainJoin:
		m.refused(c, op.Tag, nil, core.ErrNotFound)
		return true
	}
	return false
}

// resumeLease continues a lease that a client had from an earlier leader.
func (m *Machine) resumeLease(c *client, op *core.LeaseJob) {
	h, e, err := m.findIf(op.Ref, &op.If)
	has := err == nil && isLeasedBy(e, op)
	if err == nil && !has && !m.mayHaveBeenLeased(e) {
		err = core.ErrNotLeased
	}
	lease := &core.Lease{Holder: core.HeldByNobody, Worker: op.Worker}
	switch {
	case op.ByConn:
		lease.Holder = core.HeldByConn
	case op.Worker != "":
		lease.Holder = core.HeldByWorker
	}
	if err == nil && (op.ByConn && op.Worker != "" || !op.ByConn && op.ResumesUntil == 0) {
		err = core.ErrInvalid
	}
	if m.stopsHere(c, op.Tag, e, err) {
		return
	}
	if has {
		m.reply(c, core.Reply{
			Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, Lease: m.grantOf(e), Commit: m.table.JobCommit(e),
		})
		return
	}
	m.worksNow(c)
	m.takeForLease(h, e)
	m.move(e, core.Leased)
	ended := m.restoring.ended[e.Seq]
	delete(m.restoring.ended, e.Seq)
	if ended.stops {
		m.table.SetStop(e, ended.stopAfter)
	}
	if ended.rerun {
		e.Set(table.Rerun)
	}
	had, epoch := op.Resumes, e.Epoch
	e.Attempts = max(had.Attempts, 1)
	m.limits.LeasedAnyway(&m.queues[e.Queue].Queue, h, e)
	m.grant(c, lease, h, e, 0)
	e.Epoch = max(epoch, had.Epoch)
	m.waited = 0
	m.table.Unlist(h, e) // LeasedAt is its place
	e.LeasedAt = min(had.LeasedAt, m.table.Now)
	m.table.Enlist(h, e)
	if op.ResumesUntil != 0 {
		e.Granted = max(table.Millis(had.LeaseFor), 1)
		e.StateTimer = m.table.Timers.Add(max(op.ResumesUntil, m.table.Now), timer.Owner{
			Kind: table.TimerState, Handle: h,
		})
	}
	if x := m.table.Optional(h); x != nil && x.UniqueStart && !e.Has(table.Unlocked) {
		m.unlock(h)
	}
	commit := core.Commit(0)
	if m.storesLease(e, lease.Holder) {
		e.Set(table.Changed)
		m.table.Touch(h, e)
	}
	if m.opts.AwaitLeases || !op.ByConn {
		commit = m.table.JobCommit(e)
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, Lease: m.grantOf(e), Commit: commit})
}

// isLeasedBy reports whether the history has the lease, which does not end with its connection: its node may not have
// been told so.
func isLeasedBy(e *table.Entry, op *core.LeaseJob) bool {
	return e.State == core.Leased && !op.ByConn && e.HolderKind != core.HeldByConn &&
		e.Epoch == op.Resumes.Epoch && e.LeasedAt == op.Resumes.LeasedAt
}

// Settle decides about the leases that the connections of the previous process or leader had, and that were not
// resumed: they have ended, and count as attempts.
func (m *Machine) Settle(now core.Instant) {
	m.setNow(now)
	m.settleLeases()
	m.serveOffers()
}

func (m *Machine) settleLeases() {
	for _, seq := range slices.Sorted(maps.Keys(m.restoring.ended)) {
		h := m.table.Handle(seq)
		switch {
		case h == 0 || m.table.At(h).State != core.Ready:
		case m.restoring.ended[seq].stops:
			m.detach(h, m.table.At(h))
			m.endStopped(h, m.table.At(h).HolderFrom, nil)
		case m.usedUp(h, m.table.At(h)):
			m.detach(h, m.table.At(h))
			m.endUsedUp(h, m.table.At(h))
		default: // otherwise the next start would decide again, by its current policies
			m.table.Touch(h, m.table.At(h))
		}
	}
	m.restoring = restoring{}
}
