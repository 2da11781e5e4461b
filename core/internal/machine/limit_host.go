package machine

import (
	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/table"
)

// limitsHost is the machine as limits see it.
type limitsHost struct{ m *Machine }

var _ limit.Host = limitsHost{}

// Offer implements limit.Host.
func (x limitsHost) Offer(queue uint32) bool {
	x.m.offer(queue)
	q := x.m.queues[queue]
	return q != nil && !q.waitList.Empty()
}

// DropIdle implements limit.Host.
func (x limitsHost) DropIdle(queue uint32) { x.m.dropIdle(queue) }

// Client implements limit.Host.
func (x limitsHost) Client(slot uint32) core.ClientID { return x.m.clients[slot].id }

// HolderName implements limit.Host.
func (x limitsHost) HolderName(e *table.Entry) string { return x.m.holderName(e) }

// putLimit is PutLimit.
func (m *Machine) putLimit(c *client, op *core.PutLimit) {
	if err := m.limits.LimitRefusal(&op.Limit); err != nil {
		m.refusedAt(c, op.Tag, err, m.table.MetaCommit())
		return
	}
	n := m.queueForLimits(op.Limit.Queue)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.limits.SetLimit(n, op.Limit)})
}

// removeLimit is RemoveLimit.
func (m *Machine) removeLimit(c *client, op *core.RemoveLimit) {
	commit, err := m.limits.DropLimit(op)
	m.settingChanged(c, op.Tag, commit, err)
}

// shareQueue is ShareQueue.
func (m *Machine) shareQueue(c *client, op *core.ShareQueue) {
	to := op.Sharing
	if err := m.limits.SharingRefusal(&to); err != nil {
		m.refusedAt(c, op.Tag, err, m.table.MetaCommit())
		return
	}
	if to.Key.Kind == core.KeyNone && m.limits.RulesOf(to.Queue) == nil {
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.MetaCommit()})
		return
	}
	n := m.queueForLimits(to.Queue)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.limits.SetSharing(n, to)})
}

// queueForLimits finds or creates a queue for limits. A new queue is not listed until it is used.
func (m *Machine) queueForLimits(name string) uint32 {
	n := m.table.QueueNumber(name)
	if n == 0 {
		n, _ = m.queueNamed(name)
		m.table.Hide(n)
	}
	return n
}

// listLimits is ListLimits.
func (m *Machine) listLimits(c *client, op *core.ListLimits) {
	answer := &core.Answer{}
	answer.Limits, answer.Sharings = m.limits.List(op)
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(), Answer: answer})
}

// putSharedLimit is PutSharedLimit.
func (m *Machine) putSharedLimit(c *client, op *core.PutSharedLimit) {
	commit, err := m.limits.PutShared(op.Limit)
	m.settingChanged(c, op.Tag, commit, err)
}

// removeSharedLimit is RemoveSharedLimit.
func (m *Machine) removeSharedLimit(c *client, op *core.RemoveSharedLimit) {
	commit, err := m.limits.RemoveShared(op.Name)
	m.settingChanged(c, op.Tag, commit, err)
}

// listSharedLimits is ListSharedLimits.
func (m *Machine) listSharedLimits(c *client, op *core.ListSharedLimits) {
	m.reply(c, core.Reply{
		Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(),
		Answer: &core.Answer{SharedLimits: m.limits.ListShared(op.Name)},
	})
}

// restoreRules restores the rules of a queue, before its jobs.
func (m *Machine) restoreRules(name string, value []byte) error {
	p, err := limit.DecodeRules(name, value)
	if err != nil {
		return err
	}
	m.limits.ApplyRestored(m.queueForLimits(p.Queue), p)
	return nil
}
