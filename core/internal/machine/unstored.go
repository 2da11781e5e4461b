package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// Jobs that are in memory only: ephemeral jobs, for which a client waits, and jobs that a policy keeps in memory.

// inMemory reports whether a new job is kept in memory only. Stored jobs must not wait for such a job.
func (m *Machine) inMemory(op *core.Submit) bool {
	if m.policies.None() {
		return false
	}
	j := op.Job
	if m.list != nil || op.Window != 0 || len(op.Meta) > 0 || j.Ephemeral || j.Batch != 0 || j.Parent != 0 || len(j.After) > 0 {
		return false
	}
	return m.policies.Unstored(j.Queue, j.Type)
}

// storeFor stores a job that was kept in memory before it enters a queue without that policy.
func (m *Machine) storeFor(h uint32, e *table.Entry, queue, typ string) {
	if e.Extra&table.MemoryOnly != 0 && !m.policies.Unstored(queue, typ) {
		e.Extra &^= table.MemoryOnly
		m.storeNow(h, e)
	}
}

// makeDurable turns an ephemeral job into a stored job, because a client was promised that it runs.
func (m *Machine) makeDurable(h uint32, e *table.Entry) {
	if !e.Has(table.Ephemeral) {
		return
	}
	e.Clear(table.Ephemeral)
	kept := *m.table.Payload(h)
	kept.Ephemeral = false
	m.table.SetPayload(h, &kept)
	m.storeNow(h, e)
}

// storeNow stores a job that was not stored so far.
func (m *Machine) storeNow(h uint32, e *table.Entry) {
	m.table.AddOpen(table.PayloadBytes(m.table.Payload(h)))
	m.table.RewriteStatus(h, e)
	m.links.NowStored(h)
}
