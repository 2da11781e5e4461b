package machine

import (
	"slices"

	"broker/core"
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
	e, x := m.jobs.at(h), m.ensureOptional(h)
	if p := m.openJob(j.Parent); p != 0 {
		parent := m.ensureOptional(p)
		parent.openChildren++
		if m.jobs.at(p).state != core.Done {
			parent.children = append(parent.children, e.seq)
			x.waiting = append(x.waiting, j.Parent) // it has no others yet
			m.breakIfDead(e, x, p)
		}
	} else {
		x.parent = 0
	}
	m.waitFor(h, e, j.After)
	return len(x.waiting) > 0 || e.has(broken)
}

// openJob returns a job that is not closed, or zero if it is closed or gone.
func (m *Machine) openJob(seq uint64) uint32 {
	h := m.bySeq.get(seq)
	if h == 0 {
		return 0
	}
	if m.jobs.at(h).state != core.Done {
		return h
	}
	if x := m.optionalState(h); x == nil || x.isClosed || x.openChildren == 0 {
		return 0
	}
	return h
}

// closeLinks releases the jobs that wait for a finished or removed job. It returns true if the job must stay for its children,
// which are not closed yet.
func (m *Machine) closeLinks(h uint32, success bool) bool {
	x := m.optionalState(h)
	if x == nil {
		return false
	}
	m.notify(&x.children, h, success)
	if success && x.openChildren > 0 {
		return true
	}
	m.closed(h, success && !x.childrenBroken)
	return false
}

// closed notifies a job's successors and its parent that it is closed. It is called once.
func (m *Machine) closed(h uint32, success bool) {
	x := m.optionalState(h)
	if x == nil || x.isClosed {
		return
	}
	x.isClosed = true
	m.notify(&x.successors, h, success)
	p := m.bySeq.get(x.parent)
	if x.parent == 0 || p == 0 {
		return
	}
	e, parent := m.jobs.at(p), m.ensureOptional(p)
	parent.openChildren--
	parent.childrenBroken = parent.childrenBroken || !success
	e.set(changed)
	m.touch(p, e)
	if e.state == core.Done && parent.openChildren == 0 {
		m.closed(p, !parent.childrenBroken)
		if !e.has(keepsOutcome) {
			m.remove(p)
		}
	}
}

// notify ends the waiting of a list of jobs for job p. It takes the list away first, since the consequences may lead back here.
func (m *Machine) notify(list *[]uint64, p uint32, success bool) {
	waiting, pred := *list, *m.jobs.at(p)
	*list = nil
	for _, seq := range waiting {
		m.predecessorEnded(seq, &pred, success)
	}
}

// predecessorEnded removes pred from the dependencies of a blocked job; after the last one the job is unblocked, unless one is
// gone without being done.
func (m *Machine) predecessorEnded(seq uint64, pred *entry, success bool) {
	h := m.bySeq.get(seq)
	if h == 0 || m.jobs.at(h).state != core.Blocked {
		return // it no longer waits; see unlink
	}
	e, x := m.jobs.at(h), m.ensureOptional(h)
	i, found := slices.BinarySearch(x.waiting, pred.seq)
	if !found {
		return // it now waits for others
	}
	x.waiting = slices.Delete(x.waiting, i, i+1)
	breaks := m.breaks(e, x, pred.seq, success)
	released := len(x.waiting) == 0 && !e.has(broken)
	if breaks || released || pred.unstored() {
		m.rewriteStatus(h, e)
	} else {
		x.shortened = m.open
	}
	if released {
		m.unblock(h, e)
	}
}

// rewriteStatus adds the status of a job to the open batch.
func (m *Machine) rewriteStatus(h uint32, e *entry) {
	e.set(changed)
	m.touch(h, e)
}

// unstoredDependencies lists the dependencies of a job that are not in the store.
func (m *Machine) unstoredDependencies(x *optional) (seqs []uint64) {
	for _, seq := range x.waiting {
		if p := m.bySeq.get(seq); p != 0 && m.jobs.at(p).unstored() {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// nowStored rewrites the records of the jobs that wait for one that was not stored until now.
func (m *Machine) nowStored(h uint32) {
	x := m.optionalState(h)
	if x == nil {
		return
	}
	for _, list := range [...][]uint64{x.successors, x.children} {
		for _, seq := range list {
			if s := m.bySeq.get(seq); s != 0 && m.waits(seq, m.jobs.at(h).seq) {
				m.rewriteStatus(s, m.jobs.at(s))
			}
		}
	}
}

// dependents lists the jobs that depend on a job.
func (m *Machine) dependents(h uint32) (seqs []uint64) {
	for _, next := range m.waitingFor(step{seq: m.jobs.at(h).seq}, nil) {
		if !next.closesOnly {
			seqs = append(seqs, next.seq)
		}
	}
	return seqs
}

// unblock makes a job scheduled or ready.
func (m *Machine) unblock(h uint32, e *entry) {
	m.unlist(h, e)
	if e.readyAt < m.now {
		e.readyAt = m.now
		e.clear(scheduledOrder)
	}
	m.schedule(h, e)
}

// unlink removes the dependencies of a job that leaves Blocked by force. Those jobs still name it; since it never returns to
// Blocked, that has no effect, and costs less than searching long lists.
func (m *Machine) unlink(h uint32) {
	if x := m.optionalState(h); x != nil {
		x.waiting = nil
	}
}
