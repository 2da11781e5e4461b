package link

import "broker/core/internal/table"

// maxWalk is the maximum number of links to follow when looking for a cycle.
const maxWalk = 100_000

// Step is a job on the path between dependent jobs. If it is the parent of another job on the path, it must be
// closed, but need not be done.
type Step struct {
	Seq        uint64
	closesOnly bool
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
	lists := [...]*table.Dependents{x.Successors, x.Children}
	if at.closesOnly {
		lists[1] = nil
	}
	for _, list := range lists {
		list.Each(func(h uint32) bool {
			into = append(into, Step{Seq: l.table.At(h).Seq})
			return true
		})
	}
	if x.Parent != 0 && !x.IsClosed && l.table.Handle(x.Parent) != 0 {
		into = append(into, Step{Seq: x.Parent, closesOnly: true})
	}
	return into
}
