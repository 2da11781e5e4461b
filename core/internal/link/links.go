package link

import (
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// Workflow links. A job waits for its dependencies (After) to be closed as done, and for its Parent to be finished. A
// job is closed once it is finished and all its children are closed. The links are updated in the same batch as the end
// of a job. If a dependency ends without being done, the waiting job stays blocked and is marked broken until a client
// makes it ready or cancels it. A dead job may be put back, so its successors continue to wait. Job.OnBroken can change
// this: see broken.go.
//
// The end of a dependency does not rewrite the record of a job that continues to wait: with ten thousand dependencies,
// the list would be written ten thousand times. So the record still names dependencies that are done. After a restart,
// a dependency in the record that is closed or gone must have been done, because any other end marks the job as broken
// in the same commit. Only unstored jobs can be lost without being done. So the record says which dependencies are
// unstored, and is rewritten when they end.

// Host is what links need from the machine.
type Host interface {
	Unblock(h uint32, e *table.Entry)       // the job has no dependencies left
	Remove(h uint32)                        // the job was done, and was kept only for its children
	Joining(seq uint64, into []Step) []Step // appends the jobs that an atomic list makes wait for a job
}

// Links are the links between jobs. Not safe for concurrent use.
type Links struct {
	table    *table.Table
	host     Host
	breaking []Breach            // broken dependencies; see NextBroken
	unstored map[uint64][]uint64 // until Restored: the unstored dependencies of a restored job
}

// New returns the links for a table, which has no jobs yet.
func New(t *table.Table, host Host) *Links {
	return &Links{table: t, host: host, unstored: map[uint64][]uint64{}}
}

// Attach attaches a new job to its dependencies and reports whether it must wait.
func (l *Links) Attach(h uint32, j *core.Job) bool {
	e, x := l.table.At(h), l.table.EnsureOptional(h)
	if p := l.openJob(j.Parent); p != 0 {
		parent := l.table.EnsureOptional(p)
		parent.OpenChildren++
		if l.table.At(p).State != core.Done {
			parent.Children = append(parent.Children, e.Seq)
			x.Waiting = append(x.Waiting, j.Parent) // it has no other dependencies yet
			l.breakIfDead(e, x, p)
		}
	} else {
		x.Parent = 0
	}
	l.WaitFor(h, e, j.After)
	return len(x.Waiting) > 0 || e.Has(table.Broken)
}

// openJob returns a job that is not closed, or zero if it is closed or gone.
func (l *Links) openJob(seq uint64) uint32 {
	h := l.table.Handle(seq)
	if h == 0 {
		return 0
	}
	if l.table.At(h).State != core.Done {
		return h
	}
	if x := l.table.Optional(h); x == nil || x.IsClosed || x.OpenChildren == 0 {
		return 0
	}
	return h
}

// End releases the jobs that wait for a finished or removed job. It returns true if the job must be kept for its
// children, which are not closed yet.
func (l *Links) End(h uint32, success bool) bool {
	x := l.table.Optional(h)
	if x == nil {
		return false
	}
	l.notify(&x.Children, h, success)
	if success && x.OpenChildren > 0 {
		return true
	}
	l.Closed(h, success && !x.ChildrenBroken)
	return false
}

// Closed notifies a job's successors and its parent that it is closed. It is called once.
func (l *Links) Closed(h uint32, success bool) {
	x := l.table.Optional(h)
	if x == nil || x.IsClosed {
		return
	}
	x.IsClosed = true
	l.notify(&x.Successors, h, success)
	p := l.table.Handle(x.Parent)
	if x.Parent == 0 || p == 0 {
		return
	}
	e, parent := l.table.At(p), l.table.EnsureOptional(p)
	parent.OpenChildren--
	parent.ChildrenBroken = parent.ChildrenBroken || !success
	e.Set(table.Changed)
	l.table.Touch(p, e)
	if e.State == core.Done && parent.OpenChildren == 0 {
		l.Closed(p, !parent.ChildrenBroken)
		if !e.Has(table.KeepsOutcome) {
			l.host.Remove(p)
		}
	}
}

// notify tells a list of waiting jobs that job p has ended. It clears the list first, because the consequences may call
// notify again.
func (l *Links) notify(list *[]uint64, p uint32, success bool) {
	waiting, pred := *list, *l.table.At(p)
	*list = nil
	for _, seq := range waiting {
		l.predecessorEnded(seq, &pred, success)
	}
}

// predecessorEnded removes pred from the dependencies of a blocked job; after the last dependency the job is unblocked,
// unless a dependency ended without being done.
func (l *Links) predecessorEnded(seq uint64, pred *table.Entry, success bool) {
	h := l.table.Handle(seq)
	x := l.table.Optional(h)
	if h == 0 || x == nil {
		return
	}
	i, found := slices.BinarySearch(x.Waiting, pred.Seq)
	if !found {
		return // it no longer waits, or waits for other jobs
	}
	e := l.table.At(h)
	x.Waiting = slices.Delete(x.Waiting, i, i+1)
	if e.State != core.Blocked { // see Keep
		x.Shortened = l.table.Open
		return
	}
	breaks := l.breaks(e, x, pred.Seq, success)
	released := len(x.Waiting) == 0 && !e.Has(table.Broken)
	if breaks || released || pred.Unstored() {
		l.table.RewriteStatus(h, e)
	} else {
		x.Shortened = l.table.Open
	}
	if released {
		l.host.Unblock(h, e)
	}
}

// NowStored rewrites the records of the jobs that wait for a job that has just been stored.
func (l *Links) NowStored(h uint32) {
	x := l.table.Optional(h)
	if x == nil {
		return
	}
	for _, list := range [...][]uint64{x.Successors, x.Children} {
		for _, seq := range list {
			if s := l.table.Handle(seq); s != 0 && l.waits(seq, l.table.At(h).Seq) {
				l.table.RewriteStatus(s, l.table.At(s))
			}
		}
	}
}

// CountDependents counts the jobs that Dependents lists.
func (l *Links) CountDependents(h uint32) int {
	if l.table.Optional(h) == nil {
		return 0
	}
	return len(l.Dependents(h))
}

// Dependents lists the jobs that depend on a job and are not dead.
func (l *Links) Dependents(h uint32) (seqs []uint64) {
	for _, next := range l.waitingFor(Step{Seq: l.table.At(h).Seq}, nil) {
		if !next.closesOnly && l.table.At(l.table.Handle(next.Seq)).State != core.Dead {
			seqs = append(seqs, next.Seq)
		}
	}
	return seqs
}

// Unlink removes the dependencies of a job that leaves Blocked although they are not done. The dependencies still list
// the job. This has no effect, since they are not in Waiting, and costs less than searching long lists.
func (l *Links) Unlink(h uint32) {
	if x := l.table.Optional(h); x != nil {
		x.Waiting = nil
	}
}

// Keep restores the dependencies of a job that is dead because of one of them, after Unlink. So a workflow stays
// together, and can be retried as one; see Rejoin.
func (l *Links) Keep(h uint32, waiting []uint64) {
	if e := l.table.At(h); e.State == core.Dead {
		l.table.Optional(h).Waiting = waiting
	}
}

// Rejoin is for a job that leaves the dead set: it waits again for those kept dependencies that are not dead. It
// reports whether there are any.
func (l *Links) Rejoin(h uint32) bool {
	x := l.table.Optional(h)
	if x == nil {
		return false
	}
	x.Waiting = slices.DeleteFunc(x.Waiting, func(seq uint64) bool {
		p := l.openJob(seq)
		return p == 0 || l.table.At(p).State == core.Dead
	})
	return len(x.Waiting) > 0
}

// RestoreChild counts a restored job as an open child of its parent.
func (l *Links) RestoreChild(x *table.Optional) {
	if x.Parent == 0 {
		return
	}
	if p := l.table.Handle(x.Parent); p == 0 {
		x.Parent = 0
	} else if !x.IsClosed {
		l.table.EnsureOptional(p).OpenChildren++
	}
}

// RestoreWaiting links a blocked or dead job to the jobs that it still waits for. Its record may also name jobs that
// were done later.
func (l *Links) RestoreWaiting(_ uint32, e *table.Entry, x *table.Optional) {
	waiting := x.Waiting
	x.Waiting = nil
	if e.State != core.Blocked && e.State != core.Dead {
		return
	}
	for _, seq := range waiting {
		p := l.table.Handle(seq)
		if p == 0 {
			if e.State == core.Blocked && slices.Contains(l.unstored[e.Seq], seq) {
				l.breaks(e, x, seq, false) // it was lost with the previous process
				l.breaking = append(l.breaking, Breach{e.Seq, seq})
			}
			continue
		}
		done, y := l.table.At(p).State == core.Done, l.table.Optional(p)
		if done && (seq == x.Parent || y != nil && y.IsClosed) {
			continue
		}
		y = l.table.EnsureOptional(p)
		if x.Waiting = append(x.Waiting, seq); seq == x.Parent {
			y.Children = append(y.Children, e.Seq)
		} else {
			y.Successors = append(y.Successors, e.Seq)
		}
	}
	slices.Sort(x.Waiting)
}

// RestoreUnstored records, until Restored, the unstored dependencies of a restored job.
func (l *Links) RestoreUnstored(seq uint64, unstored []uint64) {
	l.unstored[seq] = slices.Clone(unstored)
}

// ForgetUnstored undoes RestoreUnstored.
func (l *Links) ForgetUnstored(seq uint64) { delete(l.unstored, seq) }

// Restored ends the restoring.
func (l *Links) Restored() { l.unstored = map[uint64][]uint64{} }
