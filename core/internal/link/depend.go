package link

import (
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// maxWalk is the maximum number of links to follow when looking for a cycle.
const maxWalk = 100_000

// Step is a job on the path between dependent jobs. If it is the parent of another job on the path, it must be closed,
// but need not be done.
type Step struct {
	Seq        uint64
	closesOnly bool
}

// Resolve finds the jobs that a job is to depend on. It fails if the job would depend on itself, directly or through
// other jobs.
func (l *Links) Resolve(e *table.Entry, after []core.Ref) ([]uint64, error) {
	if len(after) > core.MaxAfter {
		return nil, core.ErrInvalid
	}
	seqs := make([]uint64, 0, len(after))
	named := make(map[uint64]bool, len(after))
	for _, ref := range after {
		seq := ref.Seq
		switch h := l.table.Find(ref); {
		case h != 0:
			seq = l.table.At(h).Seq
		case seq == 0:
			return nil, core.ErrNotFound
		case seq >= l.table.NextSeq:
			return nil, core.ErrInvalid
		}
		if !named[seq] {
			named[seq] = true
			seqs = append(seqs, seq)
		}
	}
	if len(seqs) > 0 && l.wouldCreateCycle(e, named) {
		return nil, core.ErrInvalid
	}
	return seqs, nil
}

// wouldCreateCycle reports whether one of the named jobs depends on job e, directly or through other jobs. It also
// returns true if there are too many links to be sure.
func (l *Links) wouldCreateCycle(e *table.Entry, named map[uint64]bool) bool {
	if named[e.Seq] {
		return true
	}
	seen := map[Step]bool{}
	todo := []Step{{Seq: e.Seq}}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		if named[at.Seq] || len(seen) > maxWalk {
			return true
		}
		todo = l.host.Joining(at.Seq, l.waitingFor(at, todo))
	}
	return false
}

// waitingFor appends the jobs that cannot be closed before the job of a step.
func (l *Links) waitingFor(at Step, into []Step) []Step {
	h := l.table.Handle(at.Seq)
	x := l.table.Optional(h)
	if x == nil {
		return into
	}
	for _, seq := range x.Successors {
		if l.waits(seq, at.Seq) {
			into = append(into, Step{Seq: seq})
		}
	}
	if !at.closesOnly {
		for _, seq := range x.Children {
			if l.waits(seq, at.Seq) {
				into = append(into, Step{Seq: seq})
			}
		}
	}
	if x.Parent != 0 && !x.IsClosed && l.table.Handle(x.Parent) != 0 {
		into = append(into, Step{Seq: x.Parent, closesOnly: true})
	}
	return into
}

// waits reports whether a job is blocked by another job, or may be when it leaves the dead set.
func (l *Links) waits(seq, pred uint64) bool {
	h := l.table.Handle(seq)
	if h == 0 {
		return false
	}
	x := l.table.Optional(h)
	if x == nil {
		return false
	}
	_, found := slices.BinarySearch(x.Waiting, pred)
	return found
}

// WaitFor makes a job depend on the jobs in after that are not closed. A job that was closed without being done
// breaks it.
func (l *Links) WaitFor(h uint32, e *table.Entry, after []uint64) {
	x := l.table.EnsureOptional(h)
	waits := make(map[uint64]bool, len(x.Waiting)+len(after))
	for _, seq := range x.Waiting {
		waits[seq] = true
	}
	for _, seq := range after {
		p := l.table.Handle(seq)
		switch {
		case p == 0 || waits[seq]: // long done and gone, or named twice
		case seq == x.Parent: // the parent is closed after its child
		case l.openJob(seq) != 0:
			y := l.table.EnsureOptional(p)
			if !e.Has(table.Changed) || !slices.Contains(y.Successors, e.Seq) { // a new job is in no list
				y.Successors = append(y.Successors, e.Seq)
			}
			x.Waiting = append(x.Waiting, seq)
			waits[seq] = true
			l.breakIfDead(e, x, p)
		default:
			l.breaks(e, x, seq, !l.table.At(p).Has(table.DoneFailed) && (l.table.Optional(p) == nil || !l.table.Optional(p).ChildrenBroken))
		}
	}
	slices.Sort(x.Waiting)
}

// UnlinkAfter removes all dependencies except the parent.
func (l *Links) UnlinkAfter(h uint32, e *table.Entry) {
	e.Clear(table.Broken)
	if x := l.table.Optional(h); x != nil {
		l.StopWaiting(e, x, func(seq uint64) bool { return seq != x.Parent })
	}
}

// StopWaiting removes the dependencies that drop selects, at both ends.
func (l *Links) StopWaiting(e *table.Entry, x *table.Optional, drop func(seq uint64) bool) {
	x.Waiting = slices.DeleteFunc(x.Waiting, func(seq uint64) bool {
		if !drop(seq) {
			return false
		}
		if p := l.table.Handle(seq); p != 0 {
			y := l.table.EnsureOptional(p)
			y.Successors, _ = without(y.Successors, e.Seq)
			y.Children, _ = without(y.Children, e.Seq)
		}
		return true
	})
}

// without removes a job from a list, and returns how many elements it examined. When a job dies, its dependents leave
// its list in their order, so the ends come first: otherwise the list of a job with many dependents would be searched
// once for each of them. A job that stays at the front makes each removal behind it cost the length of the list.
func without(list []uint64, seq uint64) (rest []uint64, examined int) {
	switch n := len(list); {
	case n == 0:
		return list, 0
	case list[0] == seq:
		return list[1:], 1
	case list[n-1] == seq:
		return list[:n-1], 2
	}
	i := slices.Index(list, seq)
	if i < 0 {
		return list, len(list)
	}
	return slices.Delete(list, i, i+1), len(list)
}
