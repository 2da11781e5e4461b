package machine

import (
	"slices"

	"broker/core"
)

// Workflow links. A job waits for those it names (After) to be closed as done, and for its Parent to be finished. A job
// is closed once it is finished and all its children are closed. Whatever ends a job, the links are updated in the same
// batch: whoever waited for a job that is gone without being done stays blocked, marked broken, until somebody makes it
// ready or cancels it. A job in the dead set may be put back, so that its successors go on waiting.

// link attaches a new job to those it waits for and reports whether it must wait.
func (m *Machine) link(h uint32, j *core.Job) bool {
	e, x := m.jobs.at(h), m.ensureOptional(h)
	if p := m.openJob(j.Parent); p != 0 {
		parent := m.ensureOptional(p)
		parent.openChildren++
		if m.jobs.at(p).state != core.Done {
			parent.children = append(parent.children, e.seq)
			x.waiting = append(x.waiting, j.Parent)
		}
	} else {
		x.parent = 0
	}
	m.waitFor(h, e, j.After)
	return len(x.waiting) > 0 || e.has(broken)
}

// openJob is a job that others may still have to wait for, zero if it is closed or gone.
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

// closeLinks tells those that wait for a finished or vanished job. It reports true when the job must stay for its
// children, which are not closed yet.
func (m *Machine) closeLinks(h uint32, success bool) bool {
	x := m.optionalState(h)
	if x == nil {
		return false
	}
	m.notify(&x.children, m.jobs.at(h).seq, success)
	if success && x.openChildren > 0 {
		return true
	}
	m.closed(h, success && !x.childrenBroken)
	return false
}

// closed tells a job's successors and its parent that nothing more comes of it. Once only.
func (m *Machine) closed(h uint32, success bool) {
	x := m.optionalState(h)
	if x == nil || x.isClosed {
		return
	}
	x.isClosed = true
	m.notify(&x.successors, m.jobs.at(h).seq, success)
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

// tell ends the waiting of a list of jobs for pred. The list is taken away first: what follows may lead back here.
func (m *Machine) notify(list *[]uint64, pred uint64, success bool) {
	waiting := *list
	*list = nil
	for _, seq := range waiting {
		m.predecessorEnded(seq, pred, success)
	}
}

// predecessorEnded takes pred off the list of a blocked job; after the last one the job goes on, unless one is gone
// without being done.
func (m *Machine) predecessorEnded(seq, pred uint64, success bool) {
	h := m.bySeq.get(seq)
	if h == 0 || m.jobs.at(h).state != core.Blocked {
		return // it waits no more; see unlink
	}
	e, x := m.jobs.at(h), m.ensureOptional(h)
	i := slices.Index(x.waiting, pred)
	if i < 0 {
		return // likewise; it waits for others by now
	}
	x.waiting = slices.Delete(x.waiting, i, i+1)
	if !success {
		e.set(broken)
	}
	e.set(changed)
	m.touch(h, e)
	if len(x.waiting) == 0 && !e.has(broken) {
		m.unblock(h, e)
	}
}

// dependents lists the jobs that wait for a job.
func (m *Machine) dependents(h uint32) (seqs []uint64) {
	for _, next := range m.waitingFor(step{seq: m.jobs.at(h).seq}, nil) {
		if !next.closesOnly {
			seqs = append(seqs, next.seq)
		}
	}
	return seqs
}

// unblock lets a job go where its time says.
func (m *Machine) unblock(h uint32, e *entry) {
	m.unlist(h, e)
	if e.readyAt < m.now {
		e.readyAt = m.now
		e.clear(scheduledOrder)
	}
	m.schedule(h, e)
}

// unlink lets a job that leaves Blocked by force wait for nothing. Those it waited for still name it; as it never comes
// back to Blocked, that means nothing, and costs less than to look for it among many.
func (m *Machine) unlink(h uint32) {
	if x := m.optionalState(h); x != nil {
		x.waiting = nil
	}
}
