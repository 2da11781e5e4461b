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
	e, x := m.jobs.at(h), m.extra(h)
	if p := m.bySeq.get(j.Parent); j.Parent != 0 && p != 0 {
		parent := m.extra(p)
		parent.openKids++
		if m.jobs.at(p).state != core.Done {
			parent.children = append(parent.children, e.seq)
			x.waiting = append(x.waiting, j.Parent)
		}
	} else {
		x.parent = 0
	}
	for _, seq := range j.After {
		p := m.bySeq.get(seq)
		if p == 0 || slices.Contains(x.waiting, seq) {
			continue // long done and gone, or named twice
		}
		before := m.jobs.at(p)
		switch y := m.rare(p); {
		case before.state == core.Done && before.has(doneFailed):
			e.set(broken)
		case before.state == core.Done && (y == nil || y.openKids == 0):
		default:
			y = m.extra(p)
			y.successors = append(y.successors, e.seq)
			x.waiting = append(x.waiting, seq)
		}
	}
	return len(x.waiting) > 0 || e.has(broken)
}

// closeLinks tells those that wait for a finished or vanished job. It reports true when the job must stay for its
// children, which are not closed yet.
func (m *Machine) closeLinks(h uint32, success bool) bool {
	x := m.rare(h)
	if x == nil {
		return false
	}
	seq := m.jobs.at(h).seq
	for _, child := range x.children {
		m.predecessorEnded(child, seq, success)
	}
	x.children = nil
	if success && x.openKids > 0 {
		return true
	}
	m.closed(h, success && !x.kidsBroken)
	return false
}

// closed tells a job's successors and its parent that nothing more comes of it. Once only.
func (m *Machine) closed(h uint32, success bool) {
	x := m.rare(h)
	if x == nil || x.isClosed {
		return
	}
	x.isClosed = true
	seq := m.jobs.at(h).seq
	for _, next := range x.successors {
		m.predecessorEnded(next, seq, success)
	}
	x.successors = nil
	p := m.bySeq.get(x.parent)
	if x.parent == 0 || p == 0 {
		return
	}
	parent := m.extra(p)
	parent.openKids--
	parent.kidsBroken = parent.kidsBroken || !success
	if e := m.jobs.at(p); e.state == core.Done && parent.openKids == 0 {
		m.closed(p, !parent.kidsBroken)
		if !e.has(keepsOutcome) {
			m.remove(p)
		}
	}
}

// predecessorEnded takes pred off the list of a blocked job; after the last one the job goes on, unless one is gone
// without being done.
func (m *Machine) predecessorEnded(seq, pred uint64, success bool) {
	h := m.bySeq.get(seq)
	if h == 0 {
		return
	}
	e, x := m.jobs.at(h), m.extra(h)
	x.waiting = slices.DeleteFunc(x.waiting, func(s uint64) bool { return s == pred })
	if e.state != core.Blocked {
		return
	}
	if !success {
		e.set(broken)
	}
	e.set(changed)
	m.touch(h, e)
	if len(x.waiting) == 0 && !e.has(broken) {
		m.unblock(h, e)
	}
}

// unblock lets a job go where its time says.
func (m *Machine) unblock(h uint32, e *entry) {
	if e.readyAt < m.now {
		e.readyAt = m.now
		e.clear(scheduledOrder)
	}
	m.schedule(h, e)
}

// unlink detaches a job that leaves Blocked by force from those it waits for.
func (m *Machine) unlink(h uint32) {
	e := m.jobs.at(h)
	x := m.rare(h)
	if e.state != core.Blocked || x == nil {
		return
	}
	mine := func(s uint64) bool { return s == e.seq }
	for _, pred := range x.waiting {
		if p := m.bySeq.get(pred); p != 0 {
			y := m.extra(p)
			y.successors = slices.DeleteFunc(y.successors, mine)
			y.children = slices.DeleteFunc(y.children, mine)
		}
	}
	x.waiting = nil
}
