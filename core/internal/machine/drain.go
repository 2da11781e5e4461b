package machine

import "broker/core"

// drain stops or resumes handing out jobs, and admitting them.
func (m *Machine) drain(c *client, op *core.Drain) {
	m.draining, m.shut = op.On, op.RefuseJobs
	m.stats.Draining, m.stats.Refusing = m.draining, m.shut
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
	for _, n := range m.table.SortedQueues() { // a queue may be removed when its last job expires
		m.offer(n)
	}
}

// closedTo returns why ephemeral or stored jobs are refused now, or nil.
func (m *Machine) closedTo(ephemeral bool) error {
	switch {
	case m.shut:
		return core.ErrDraining
	case ephemeral:
		return nil
	}
	return m.refuse
}
