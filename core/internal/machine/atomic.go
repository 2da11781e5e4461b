package machine

import (
	"broker/core"
	"broker/core/internal/plan"
	"broker/core/internal/table"
)

// atomic applies all operations of a list or none.
func (m *Machine) atomic(c *client, op *core.Atomic) {
	r := core.Reply{Kind: core.Failed, Tag: op.Tag, Err: core.ErrInvalid}
	if len(op.Ops) > core.MaxAtomic {
		m.reply(c, r)
		return
	}
	m.list = plan.New(m.table, c.slot)
	defer func() { m.list = nil }()
	index := m.checkAll(c, op.Ops)
	if c.mustFetch() {
		return
	}
	list := m.list
	if index < len(op.Ops) {
		m.list = nil
		r.Answer, r.Err, r.Commit = &core.Answer{Index: index}, list.Err, m.newest()
		if list.Entry != nil {
			r.Seq = list.Entry.Seq
		}
		m.reply(c, r)
		return
	}
	list.Apply()
	for _, one := range op.Ops {
		m.apply(c, one)
	}
	m.list = nil
	m.reply(c, core.Reply{
		Kind: core.Accepted, Tag: op.Tag, Commit: list.Commit(), Answer: &core.Answer{Replies: list.Replies},
	})
}

// checkAll returns the index of the first operation that is refused, or the number of operations.
func (m *Machine) checkAll(c *client, ops []core.Op) int {
	list := m.list
	for i, one := range ops {
		if list.Err = m.formatRefusal(one); list.Err == nil {
			list.Err = list.Next(one)
		}
		if list.Err == nil {
			m.apply(c, one)
		}
		if list.Err != nil {
			return i
		}
		list.Note(one)
	}
	return len(ops)
}

// rejectedInList reports whether an operation of a list ends here: every operation does during the check, and later
// operations whose job is gone do.
func (m *Machine) rejectedInList(c *client, tag uint64, e *table.Entry, err error) bool {
	if m.list.IsChecked() {
		m.list.Err, m.list.Entry = err, e
		return true
	}
	if e == nil {
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: tag, Commit: m.table.Promise()})
	}
	return e == nil
}
