package machine

import "broker/core"

// Jobs that are in memory only: ephemeral ones, for which a client waits, and those that a policy keeps there.

// inMemory reports whether a new job is kept in memory only. What is stored must not wait for such a job.
func (m *Machine) inMemory(op *core.Submit) bool {
	if m.policies.none() {
		return false
	}
	j := op.Job
	if m.run != nil || op.Window != 0 || len(op.Meta) > 0 || j.Ephemeral || j.Batch != 0 || j.Parent != 0 || len(j.After) > 0 {
		return false
	}
	return m.unstoredIn(j.Queue, j.Type)
}

// unstoredIn reports whether a policy keeps jobs of a type in memory while they are in a queue.
func (m *Machine) unstoredIn(queue, typ string) bool {
	if m.policies.none() {
		return false
	}
	p := firstWith(m.policies[core.PolicyOfType], typ, m.policies[core.PolicyOfQueue][queue], core.PolicyDurability)
	return p != nil && p.Unstored
}

// storeFor stores a job that was kept in memory before it enters a queue where it would not be.
func (m *Machine) storeFor(h uint32, e *entry, queue, typ string) {
	if e.words&memoryOnly != 0 && !m.unstoredIn(queue, typ) {
		e.words &^= memoryOnly
		m.storeNow(h, e)
	}
}

// makeDurable makes an ephemeral job a stored one: a client was promised that it runs.
func (m *Machine) makeDurable(h uint32, e *entry) {
	if !e.has(ephemeral) {
		return
	}
	e.clear(ephemeral)
	kept := *m.jobs.payload(h)
	kept.Ephemeral = false
	m.jobs.setPayload(h, &kept)
	m.storeNow(h, e)
}

// storeNow writes a job that was not stored until now.
func (m *Machine) storeNow(h uint32, e *entry) {
	m.addOpen(payloadBytes(m.jobs.payload(h)))
	m.rewriteStatus(h, e)
	m.nowStored(h)
}
