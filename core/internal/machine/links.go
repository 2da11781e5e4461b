package machine

import (
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// Workflow links. A job waits for its dependencies (After) to be closed as done, and for its Parent to be finished. A job is
// closed once it is finished and all its children are closed. The links are updated in the same batch as the end of a job: a job
// that depends on one that is gone without being done stays blocked, marked broken, until a client makes it ready or cancels it.
// A job in the dead set may be put back, so its successors continue to wait. Job.OnBroken chooses something else: see broken.go.
//
// The end of a dependency does not rewrite the record of a job that continues to wait: ten thousand dependencies would write its
// list ten thousand times. The record keeps naming what was done meanwhile. After a restart, a dependency in it that is closed or
// gone was done, since one that ends in any other way marks the job as broken in the same commit. Only jobs that are not stored
// could be lost without being done, so the record says which those are, and is rewritten when they end.

// link attaches a new job to its dependencies and reports whether it must wait.
func (m *Machine) link(h uint32, j *core.Job) bool {
	e, x := m.table.At(h), m.table.EnsureOptional(h)
	if p := m.openJob(j.Parent); p != 0 {
		parent := m.table.EnsureOptional(p)
		parent.OpenChildren++
		if m.table.At(p).State != core.Done {
			parent.Children = append(parent.Children, e.Seq)
			x.Waiting = append(x.Waiting, j.Parent) // it has no others yet
			m.breakIfDead(e, x, p)
		}
	} else {
		x.Parent = 0
	}
	m.waitFor(h, e, j.After)
	return len(x.Waiting) > 0 || e.Has(table.Broken)
}

// openJob returns a job that is not closed, or zero if it is closed or gone.
func (m *Machine) openJob(seq uint64) uint32 {
	h := m.table.Handle(seq)
	if h == 0 {
		return 0
	}
	if m.table.At(h).State != core.Done {
		return h
	}
	if x := m.table.Optional(h); x == nil || x.IsClosed || x.OpenChildren == 0 {
		return 0
	}
	return h
}

// closeLinks releases the jobs that wait for a finished or removed job. It returns true if the job must stay for its children,
// which are not closed yet.
func (m *Machine) closeLinks(h uint32, success bool) bool {
	x := m.table.Optional(h)
	if x == nil {
		return false
	}
	m.notify(&x.Children, h, success)
	if success && x.OpenChildren > 0 {
		return true
	}
	m.closed(h, success && !x.ChildrenBroken)
	return false
}

// closed notifies a job's successors and its parent that it is closed. It is called once.
func (m *Machine) closed(h uint32, success bool) {
	x := m.table.Optional(h)
	if x == nil || x.IsClosed {
		return
	}
	x.IsClosed = true
	m.notify(&x.Successors, h, success)
	p := m.table.Handle(x.Parent)
	if x.Parent == 0 || p == 0 {
		return
	}
	e, parent := m.table.At(p), m.table.EnsureOptional(p)
	parent.OpenChildren--
	parent.ChildrenBroken = parent.ChildrenBroken || !success
	e.Set(table.Changed)
	m.table.Touch(p, e)
	if e.State == core.Done && parent.OpenChildren == 0 {
		m.closed(p, !parent.ChildrenBroken)
		if !e.Has(table.KeepsOutcome) {
			m.remove(p)
		}
	}
}

// notify ends the waiting of a list of jobs for job p. It takes the list away first, since the consequences may lead back here.
func (m *Machine) notify(list *[]uint64, p uint32, success bool) {
	waiting, pred := *list, *m.table.At(p)
	*list = nil
	for _, seq := range waiting {
		m.predecessorEnded(seq, &pred, success)
	}
}

// predecessorEnded removes pred from the dependencies of a blocked job; after the last one the job is unblocked, unless one is
// gone without being done.
func (m *Machine) predecessorEnded(seq uint64, pred *table.Entry, success bool) {
	h := m.table.Handle(seq)
	if h == 0 || m.table.At(h).State != core.Blocked {
		return // it no longer waits; see unlink
	}
	e, x := m.table.At(h), m.table.EnsureOptional(h)
	i, found := slices.BinarySearch(x.Waiting, pred.Seq)
	if !found {
		return // it now waits for others
	}
	x.Waiting = slices.Delete(x.Waiting, i, i+1)
	breaks := m.breaks(e, x, pred.Seq, success)
	released := len(x.Waiting) == 0 && !e.Has(table.Broken)
	if breaks || released || pred.Unstored() {
		m.rewriteStatus(h, e)
	} else {
		x.Shortened = m.table.Open
	}
	if released {
		m.unblock(h, e)
	}
}

// rewriteStatus adds the status of a job to the open batch.
func (m *Machine) rewriteStatus(h uint32, e *table.Entry) {
	e.Set(table.Changed)
	m.table.Touch(h, e)
}

// nowStored rewrites the records of the jobs that wait for one that was not stored until now.
func (m *Machine) nowStored(h uint32) {
	x := m.table.Optional(h)
	if x == nil {
		return
	}
	for _, list := range [...][]uint64{x.Successors, x.Children} {
		for _, seq := range list {
			if s := m.table.Handle(seq); s != 0 && m.waits(seq, m.table.At(h).Seq) {
				m.rewriteStatus(s, m.table.At(s))
			}
		}
	}
}

// dependents lists the jobs that depend on a job.
func (m *Machine) dependents(h uint32) (seqs []uint64) {
	for _, next := range m.waitingFor(step{seq: m.table.At(h).Seq}, nil) {
		if !next.closesOnly {
			seqs = append(seqs, next.seq)
		}
	}
	return seqs
}

// unblock makes a job scheduled or ready.
func (m *Machine) unblock(h uint32, e *table.Entry) {
	m.table.Unlist(h, e)
	if e.ReadyAt < m.table.Now {
		e.ReadyAt = m.table.Now
		e.Clear(table.ScheduledOrder)
	}
	m.schedule(h, e)
}

// unlink removes the dependencies of a job that leaves Blocked by force. Those jobs still name it; since it never returns to
// Blocked, that has no effect, and costs less than searching long lists.
func (m *Machine) unlink(h uint32) {
	if x := m.table.Optional(h); x != nil {
		x.Waiting = nil
	}
}
