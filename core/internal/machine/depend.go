package machine

import (
	"slices"

	"broker/core"
	"broker/core/internal/table"
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
	x := m.table.EnsureOptional(h)
	if e.State != core.Blocked && (len(x.Waiting) > 0 || e.Has(table.Broken)) {
		m.detach(h, e)
		m.move(e, core.Blocked)
		m.table.Enlist(h, e)
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
	if e.State == core.Blocked {
		m.dropDependencies(h, e, op)
	}
	m.dependenciesChanged(c, op.Tag, h, e)
}

// dropDependencies removes jobs from the list of a blocked one.
func (m *Machine) dropDependencies(h uint32, e *table.Entry, op *core.RemoveDependencies) {
	x := m.table.EnsureOptional(h)
	if op.All {
		e.Clear(table.Broken)
		m.stopWaiting(e, x, func(uint64) bool { return true })
		return
	}
	drop := make(map[uint64]bool, len(op.After))
	for _, ref := range op.After {
		if p := m.table.Find(ref); p != 0 {
			drop[m.table.At(p).Seq] = true
		}
	}
	m.stopWaiting(e, x, func(seq uint64) bool { return drop[seq] })
}

// dependenciesChanged releases a job without dependencies, and replies.
func (m *Machine) dependenciesChanged(c *client, tag uint64, h uint32, e *table.Entry) {
	x := m.table.EnsureOptional(h)
	e.Epoch++
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.record(h, e, core.EventChanged, "dependencies")
	r := core.Reply{Kind: core.Accepted, Tag: tag, Seq: e.Seq, N: len(x.Waiting), Lease: core.Grant{Epoch: e.Epoch}}
	r.Commit = m.table.ChangeCommit(e)
	m.reply(c, r)
	if e.State == core.Blocked && len(x.Waiting) == 0 && !e.Has(table.Broken) {
		m.unblock(h, e)
	}
}

// waitingRefusal is why the dependencies of a job cannot change.
func (m *Machine) waitingRefusal(h uint32, e *table.Entry) error {
	switch e.State {
	case core.Blocked, core.Scheduled, core.Ready:
	case core.Done:
		return core.ErrFinished
	case core.Gone, core.Leased, core.Retrying, core.Dead:
		return core.ErrInvalid
	}
	if e.Has(table.Ephemeral) || m.heldByBatch(h, e) {
		return core.ErrInvalid
	}
	return nil
}

// dependenciesRefusal finds the new dependencies of a job, or says why they are not allowed.
func (m *Machine) dependenciesRefusal(h uint32, e *table.Entry, after []core.Ref) ([]uint64, error) {
	if err := m.waitingRefusal(h, e); err != nil {
		return nil, err
	}
	if x := m.table.Optional(h); x != nil && len(x.Waiting)+len(after) > core.MaxAfter {
		return nil, core.ErrInvalid
	}
	return m.resolveAfter(e, after)
}

// heldByBatch reports whether a job is a callback that its batch has not released.
func (m *Machine) heldByBatch(h uint32, e *table.Entry) bool {
	x := m.table.Optional(h)
	return e.State == core.Blocked && x != nil && x.CallbackFor != 0
}

// resolveAfter finds the jobs on which a job is to depend. It must not depend on itself, directly or through others.
func (m *Machine) resolveAfter(e *table.Entry, after []core.Ref) ([]uint64, error) {
	if len(after) > core.MaxAfter {
		return nil, core.ErrInvalid
	}
	seqs := make([]uint64, 0, len(after))
	named := make(map[uint64]bool, len(after))
	for _, ref := range after {
		seq := ref.Seq
		switch h := m.table.Find(ref); {
		case h != 0:
			seq = m.table.At(h).Seq
		case seq == 0:
			return nil, core.ErrNotFound
		case seq >= m.table.NextSeq:
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
func (m *Machine) wouldCreateCycle(e *table.Entry, named map[uint64]bool) bool {
	if named[e.Seq] {
		return true
	}
	seen := map[step]bool{}
	todo := []step{{seq: e.Seq}}
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
	h := m.table.Handle(at.seq)
	x := m.table.Optional(h)
	if x == nil {
		return into
	}
	for _, seq := range x.Successors {
		if m.waits(seq, at.seq) {
			into = append(into, step{seq: seq})
		}
	}
	if !at.closesOnly {
		for _, seq := range x.Children {
			if m.waits(seq, at.seq) {
				into = append(into, step{seq: seq})
			}
		}
	}
	if x.Parent != 0 && !x.IsClosed && m.table.Handle(x.Parent) != 0 {
		into = append(into, step{seq: x.Parent, closesOnly: true})
	}
	return into
}

// waits reports whether a job is blocked by another.
func (m *Machine) waits(seq, pred uint64) bool {
	h := m.table.Handle(seq)
	if h == 0 {
		return false
	}
	x := m.table.Optional(h)
	if x == nil {
		return false
	}
	_, found := slices.BinarySearch(x.Waiting, pred)
	return found
}

// waitFor makes a job depend on those of after that are not closed; one that was closed without being done breaks it.
func (m *Machine) waitFor(h uint32, e *table.Entry, after []uint64) {
	x := m.table.EnsureOptional(h)
	waits := make(map[uint64]bool, len(x.Waiting)+len(after))
	for _, seq := range x.Waiting {
		waits[seq] = true
	}
	for _, seq := range after {
		p := m.table.Handle(seq)
		switch {
		case p == 0 || waits[seq]: // long done and gone, or named twice
		case seq == x.Parent: // the parent is closed after its child
		case m.openJob(seq) != 0:
			y := m.table.EnsureOptional(p)
			if !e.Has(table.Changed) || !slices.Contains(y.Successors, e.Seq) { // a new job is in no list
				y.Successors = append(y.Successors, e.Seq)
			}
			x.Waiting = append(x.Waiting, seq)
			waits[seq] = true
			m.breakIfDead(e, x, p)
		default:
			m.breaks(e, x, seq, !m.table.At(p).Has(table.DoneFailed) && (m.table.Optional(p) == nil || !m.table.Optional(p).ChildrenBroken))
		}
	}
	slices.Sort(x.Waiting)
}

// unlinkAfter removes all dependencies except the parent.
func (m *Machine) unlinkAfter(h uint32, e *table.Entry) {
	e.Clear(table.Broken)
	if x := m.table.Optional(h); x != nil {
		m.stopWaiting(e, x, func(seq uint64) bool { return seq != x.Parent })
	}
}

// stopWaiting removes the dependencies that drop selects, at both ends.
func (m *Machine) stopWaiting(e *table.Entry, x *table.Optional, drop func(seq uint64) bool) {
	is := func(seq uint64) bool { return seq == e.Seq }
	x.Waiting = slices.DeleteFunc(x.Waiting, func(seq uint64) bool {
		if !drop(seq) {
			return false
		}
		if p := m.table.Handle(seq); p != 0 {
			y := m.table.EnsureOptional(p)
			y.Successors, y.Children = slices.DeleteFunc(y.Successors, is), slices.DeleteFunc(y.Children, is)
		}
		return true
	})
}
