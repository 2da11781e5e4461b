package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// transferLease transfers a lease to a worker with an id.
func (m *Machine) transferLease(c *client, op *core.TransferLease) {
	h, e, err := m.findIf(op.Ref, &core.Condition{})
	switch {
	case err != nil:
	case e.State != core.Leased || e.Epoch != op.Epoch:
		err = core.ErrNotLeased
	case op.Worker == "" || op.LeaseFor < 0:
		err = core.ErrInvalid
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	m.unhold(h, e)
	m.adoptConsumer(c, op.Worker)
	to := core.Lease{Holder: core.HeldByWorker, Worker: op.Worker}
	granted := table.Millis(op.LeaseFor)
	if granted == 0 {
		granted = m.grantFor(e, &to, 0)
	}
	m.limits.Transferred(&m.queues[e.Queue].Queue, h, e)
	m.grant(c, &to, h, e, granted)
	m.waited = 0
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.record(h, e, core.EventLeased, "transferred")
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, Lease: m.grantOf(e), Commit: m.table.ChangeCommit(e)})
}
