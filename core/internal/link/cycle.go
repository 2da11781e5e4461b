package link

import "broker/core/internal/table"

// MaxWalk is how many links a search for a cycle follows at most in each direction.
const MaxWalk = 16_384

// firstWalk is how many links it follows first, so that it does not go far in one direction if it ends soon in the
// other.
const firstWalk = 64

// step is a job on the path between dependent jobs. Towards the dependents, a parent of another job on the path must
// be closed, but need not be done; towards the dependencies, the parent of a job must be finished, but need not be
// closed.
type step struct {
	seq  uint64
	only bool // closed, or finished
}

// walk is one direction of the search.
type walk struct {
	seen map[step]bool
	todo []step
	left int // links
}

func newWalk(links int) *walk { return &walk{seen: map[step]bool{}, left: links} }

// add adds a step. It returns false if the walk has followed all of its links.
func (w *walk) add(s step) bool {
	if w.left == 0 {
		return false
	}
	if w.left--; !w.seen[s] {
		w.seen[s] = true
		w.todo = append(w.todo, s)
	}
	return true
}

// finding is what a walk has found.
type finding uint8

const (
	noCycle finding = iota
	cycle
	unsure // there are more links, or they are not known
)

// run walks from the steps in todo until one of them is a goal. follow adds the steps that follow a step, and returns
// false if they are too many or not all known.
func (w *walk) run(goal func(seq uint64) bool, follow func(step, *walk) bool) finding {
	found := noCycle
	for len(w.todo) > 0 {
		at := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		if goal(at.seq) {
			return cycle
		}
		if !follow(at, w) {
			found = unsure
		}
		if w.left == 0 {
			return unsure
		}
	}
	return found
}

// wouldCreateCycle reports whether one of the named jobs is a job, or depends on it directly or through other jobs.
// It also returns true if there are too many links to be sure. It walks from the job to its dependents, and from the
// named jobs to their dependencies: there is no cycle if one of the walks ends without reaching the start of the
// other one. So a job without dependents takes a single step, however long the chains behind the named jobs are, and
// so do named jobs that wait for nothing, however many dependents the job has.
func (l *Links) wouldCreateCycle(seq uint64, named []uint64) bool {
	isNamed := make(map[uint64]bool, len(named))
	for _, pred := range named {
		isNamed[pred] = true
	}
	for links := firstWalk; links <= MaxWalk; links *= 4 {
		down, up := newWalk(links), newWalk(links+len(named))
		down.add(step{seq: seq})
		for _, pred := range named {
			up.add(step{seq: pred})
		}
		f := down.run(func(at uint64) bool { return isNamed[at] }, l.dependentsOf)
		if f == unsure {
			f = up.run(func(at uint64) bool { return at == seq }, l.dependenciesOf)
		}
		l.table.Touched += len(down.seen) + len(up.seen)
		if f != unsure {
			return f == cycle
		}
	}
	return true
}

// dependentsOf adds the jobs that cannot be done or closed before the job of a step.
func (l *Links) dependentsOf(at step, w *walk) bool {
	for _, seq := range l.host.Joining(at.seq) {
		if !w.add(step{seq: seq}) {
			return false
		}
	}
	x := l.table.Optional(l.table.Handle(at.seq))
	if x == nil {
		return true
	}
	lists := [...]*table.Dependents{x.Successors, x.Children}
	if at.only {
		lists[1] = nil
	}
	enough := true
	for _, list := range lists {
		list.Each(func(h uint32) bool {
			enough = enough && w.add(step{seq: l.table.At(h).Seq})
			return enough
		})
	}
	if enough && x.Parent != 0 && !x.IsClosed && l.table.Handle(x.Parent) != 0 {
		enough = w.add(step{seq: x.Parent, only: true})
	}
	return enough
}

// dependenciesOf adds the jobs that must be done or closed before the job of a step can be. A parent does not know
// all of its children.
func (l *Links) dependenciesOf(at step, w *walk) bool {
	for _, seq := range l.host.Awaiting(at.seq) {
		if !w.add(step{seq: seq}) {
			return false
		}
	}
	x := l.table.Optional(l.table.Handle(at.seq))
	if x == nil {
		return true
	}
	for _, seq := range x.Waiting {
		if !w.add(step{seq: seq, only: seq == x.Parent}) {
			return false
		}
	}
	return at.only || x.OpenChildren == 0
}
