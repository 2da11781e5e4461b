package machine

import (
	"slices"

	"broker/core"
)

// maxWalk is the maximum number of links to follow when looking for a cycle.
const maxWalk = 100_000

// addDependencies adds dependencies to a blocked, scheduled or ready job.
func (m *Machine) addDependencies(c *client, op *core.AddDependencies) {
	h, e, err := m.findIf(op.Ref, &op.If)
	var after []uint64
	if err == nil {
		after, err = m.dependenciesRefusal(h, e, op.After)
	}
	if m.rejectedBy(c, op.Tag, e, err) {
		return
	}
	m.waitFor(h, e, after)
	x := m.ensureOptional(h)
	if e.state != core.Blocked && (len(x.waiting) > 0 || e.has(broken)) {
		m.detach(h, e)
		m.move(e, core.Blocked)
		m.enlist(h, e)
	}
	m.dependenciesChanged(c, op.Tag, h, e)
}

// removeDependencies removes dependencies of a blocked job.
func (m *Machine) removeDependencies(c *client, op *core.RemoveDependencies) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil {
		err = m.waitingRefusal(h, e)
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	if e.state == core.Blocked {
		m.dropDependencies(h, e, op)
	}
	m.dependenciesChanged(c, op.Tag, h, e)
}

// dropDependencies removes jobs from the list of a blocked one.
func (m *Machine) dropDependencies(h uint32, e *entry, op *core.RemoveDependencies) {
	x := m.ensureOptional(h)
	if op.All {
		e.clear(broken)
		m.stopWaiting(e, x, func(uint64) bool { return true })
		return
	}
	drop := make(map[uint64]bool, len(op.After))
	for _, ref := range op.After {
		if p := m.find(ref); p != 0 {
			drop[m.jobs.at(p).seq] = true
		}
	}
	m.stopWaiting(e, x, func(seq uint64) bool { return drop[seq] })
}

// dependenciesChanged releases a job without dependencies, and replies.
func (m *Machine) dependenciesChanged(c *client, tag uint64, h uint32, e *entry) {
	x := m.ensureOptional(h)
	e.epoch++
	e.set(changed)
	m.touch(h, e)
	m.record(h, e, core.EventChanged, "dependencies")
	r := core.Reply{Kind: core.Accepted, Tag: tag, Seq: e.seq, N: len(x.waiting), Lease: core.Grant{Epoch: e.epoch}}
	r.Commit = m.changeCommit(e)
	m.reply(c, r)
	if e.state == core.Blocked && len(x.waiting) == 0 && !e.has(broken) {
		m.unblock(h, e)
	}
}

// waitingRefusal is why the dependencies of a job cannot change.
func (m *Machine) waitingRefusal(h uint32, e *entry) error {
	switch e.state {
	case core.Blocked, core.Scheduled, core.Ready:
	case core.Done:
		return core.ErrFinished
	case core.Gone, core.Leased, core.Retrying, core.Dead:
		return core.ErrInvalid
	}
	if e.has(ephemeral) || m.heldByBatch(h, e) {
		return core.ErrInvalid
	}
	return nil
}

// dependenciesRefusal finds the new dependencies of a job, or says why they are not allowed.
func (m *Machine) dependenciesRefusal(h uint32, e *entry, after []core.Ref) ([]uint64, error) {
	if err := m.waitingRefusal(h, e); err != nil {
		return nil, err
	}
	if x := m.optionalState(h); x != nil && len(x.waiting)+len(after) > core.MaxAfter {
		return nil, core.ErrInvalid
	}
	return m.resolveAfter(e, after)
}

// heldByBatch reports whether a job is a callback that its batch has not released.
func (m *Machine) heldByBatch(h uint32, e *entry) bool {
	x := m.optionalState(h)
	return e.state == core.Blocked && x != nil && x.callbackFor != 0
}

// resolveAfter finds the jobs on which a job is to depend. It must not depend on itself, directly or through others.
func (m *Machine) resolveAfter(e *entry, after []core.Ref) ([]uint64, error) {
	if len(after) > core.MaxAfter {
		return nil, core.ErrInvalid
	}
	seqs := make([]uint64, 0, len(after))
	named := make(map[uint64]bool, len(after))
	for _, ref := range after {
		seq := ref.Seq
		switch h := m.find(ref); {
		case h != 0:
			seq = m.jobs.at(h).seq
		case seq == 0:
			return nil, core.ErrNotFound
		case seq >= m.nextSeq:
			return nil, core.ErrInvalid
		}
		if !named[seq] {
			named[seq] = true
			seqs = append(seqs, seq)
		}
	}
	if len(seqs) > 0 && m.wouldCreateCycle(e, named) {
		return nil, core.ErrInvalid
	}
	return seqs, nil
}

// step is a job on the path between dependent jobs. If it is the parent of another one on the path, only its being closed
// matters, not its being done.
type step struct {
	seq        uint64
	closesOnly bool
}

// wouldCreateCycle reports whether one of the named jobs depends on job e, directly or through others. It also returns true if there
// are too many links to be sure.
func (m *Machine) wouldCreateCycle(e *entry, named map[uint64]bool) bool {
	if named[e.seq] {
		return true
	}
	seen := map[step]bool{}
	todo := []step{{seq: e.seq}}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		if named[at.seq] || len(seen) > maxWalk {
			return true
		}
		todo = m.run.waitingFor(at.seq, m.waitingFor(at, todo))
	}
	return false
}

// waitingFor appends the jobs that cannot be closed before the job of a step.
func (m *Machine) waitingFor(at step, into []step) []step {
	h := m.bySeq.get(at.seq)
	x := m.optionalState(h)
	if x == nil {
		return into
	}
	for _, seq := range x.successors {
		if m.waits(seq, at.seq) {
			into = append(into, step{seq: seq})
		}
	}
	if !at.closesOnly {
		for _, seq := range x.children {
			if m.waits(seq, at.seq) {
				into = append(into, step{seq: seq})
			}
		}
	}
	if x.parent != 0 && !x.isClosed && m.bySeq.get(x.parent) != 0 {
		into = append(into, step{seq: x.parent, closesOnly: true})
	}
	return into
}

// waits reports whether a job is blocked by another.
func (m *Machine) waits(seq, pred uint64) bool {
	h := m.bySeq.get(seq)
	if h == 0 {
		return false
	}
	x := m.optionalState(h)
	if x == nil {
		return false
	}
	_, found := slices.BinarySearch(x.waiting, pred)
	return found
}

// waitFor makes a job depend on those of after that are not closed; one that was closed without being done breaks it.
func (m *Machine) waitFor(h uint32, e *entry, after []uint64) {
	x := m.ensureOptional(h)
	waits := make(map[uint64]bool, len(x.waiting)+len(after))
	for _, seq := range x.waiting {
		waits[seq] = true
	}
	for _, seq := range after {
		p := m.bySeq.get(seq)
		switch {
		case p == 0 || waits[seq]: // long done and gone, or named twice
		case seq == x.parent: // the parent is closed after its child
		case m.openJob(seq) != 0:
			y := m.ensureOptional(p)
			if !e.has(changed) || !slices.Contains(y.successors, e.seq) { // a new job is in no list
				y.successors = append(y.successors, e.seq)
			}
			x.waiting = append(x.waiting, seq)
			waits[seq] = true
			m.breakIfDead(e, x, p)
		default:
			m.breaks(e, x, seq, !m.jobs.at(p).has(doneFailed) && (m.optionalState(p) == nil || !m.optionalState(p).childrenBroken))
		}
	}
	slices.Sort(x.waiting)
}

// unlinkAfter removes all dependencies except the parent.
func (m *Machine) unlinkAfter(h uint32, e *entry) {
	e.clear(broken)
	if x := m.optionalState(h); x != nil {
		m.stopWaiting(e, x, func(seq uint64) bool { return seq != x.parent })
	}
}

// stopWaiting removes the dependencies that drop selects, at both ends.
func (m *Machine) stopWaiting(e *entry, x *optional, drop func(seq uint64) bool) {
	is := func(seq uint64) bool { return seq == e.seq }
	x.waiting = slices.DeleteFunc(x.waiting, func(seq uint64) bool {
		if !drop(seq) {
			return false
		}
		if p := m.bySeq.get(seq); p != 0 {
			y := m.ensureOptional(p)
			y.successors, y.children = slices.DeleteFunc(y.successors, is), slices.DeleteFunc(y.children, is)
		}
		return true
	})
}
