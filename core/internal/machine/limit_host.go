package machine

import (
	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/table"
)

// limitsHost is the machine as limits see it.
type limitsHost struct{ m *Machine }

var _ limit.Host = limitsHost{}

// QueueFor implements limit.Host.
func (x limitsHost) QueueFor(name string) uint32 { return x.m.queueForLimits(name) }

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
	commit, err := m.limits.Put(&op.Limit)
	m.settingChanged(c, op.Tag, commit, err)
}

// removeLimit is RemoveLimit.
func (m *Machine) removeLimit(c *client, op *core.RemoveLimit) {
	commit, err := m.limits.Remove(op.ID, op.FromConfig)
	m.settingChanged(c, op.Tag, commit, err)
}

// shareQueue is ShareQueue.
func (m *Machine) shareQueue(c *client, op *core.ShareQueue) {
	commit, err := m.limits.Share(&op.Sharing)
	m.settingChanged(c, op.Tag, commit, err)
}

// listLimits is ListLimits.
func (m *Machine) listLimits(c *client, op *core.ListLimits) {
	m.reply(c, core.Reply{
		Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(), Answer: m.limits.List(op),
	})
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
