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
	m.run = plan.New(m.table, c.slot)
	defer func() { m.run = nil }()
	index := m.checkAll(c, op.Ops)
	if c.mustFetch() {
		return
	}
	run := m.run
	if index < len(op.Ops) {
		m.run = nil
		r.Answer, r.Err, r.Commit = &core.Answer{Index: index}, run.Err, m.newest()
		if run.Entry != nil {
			r.Seq = run.Entry.Seq
		}
		m.reply(c, r)
		return
	}
	run.Apply()
	for _, one := range op.Ops {
		m.apply(c, one)
	}
	m.run = nil
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: run.Commit(), Answer: &core.Answer{Replies: run.Replies}})
}

// checkAll returns the index of the first operation that is refused, or the number of operations.
func (m *Machine) checkAll(c *client, ops []core.Op) int {
	run := m.run
	for i, one := range ops {
		if run.Err = run.Next(one); run.Err == nil {
			m.apply(c, one)
		}
		if run.Err != nil {
			return i
		}
		run.Note(one)
	}
	return len(ops)
}

// rejectedInList reports whether an operation of a list ends here: every operation does during the check, and later operations whose
// job is gone do.
func (m *Machine) rejectedInList(c *client, tag uint64, e *table.Entry, err error) bool {
	if m.run.IsChecked() {
		m.run.Err, m.run.Entry = err, e
		return true
	}
	if e == nil {
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: tag, Commit: m.table.Promise()})
	}
	return e == nil
}
