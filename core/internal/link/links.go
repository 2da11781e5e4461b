package link

import (
	"cmp"
	"slices"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
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
	Unblock(h uint32, e *table.Entry) // the job has no dependencies left
	Remove(h uint32)                  // the job was done, and was kept only for its children
	Joining(seq uint64) []uint64      // the jobs that an atomic list makes wait for a job
	Awaiting(seq uint64) []uint64     // the jobs that an atomic list makes a job wait for
	TakesSteps() bool                 // every node that may lead next continues what is left; see rest.go
}

// Links are the links between jobs. Not safe for concurrent use.
type Links struct {
	table    *table.Table
	host     Host
	breaking []Breach            // broken dependencies; see NextBroken
	deaths   []death             // deaths that may break dependencies; see NextBroken
	unstored map[uint64][]uint64 // until Restored: the unstored dependencies of a restored job

	step, usual int               // how much an operation or a step touches, approximately; see rest.go
	rests       map[restKey]*rest // what ends and deaths have left
	queue       []*rest           // the same, the oldest first
	timer       timer.ID          // of the next step
}

// New returns the links for a table, which has no jobs yet. An operation or a step touches about as many jobs and
// links as step says; zero: the usual number.
func New(t *table.Table, host Host, step int) *Links {
	step = cmp.Or(step, usualStep)
	return &Links{
		table: t, host: host, unstored: map[uint64][]uint64{}, step: step, usual: step, rests: map[restKey]*rest{},
	}
}

// Attach attaches a new job to its dependencies and reports whether it must wait.
func (l *Links) Attach(h uint32, j *core.Job) bool {
	e, x := l.table.At(h), l.table.EnsureOptional(h)
	if p := l.openJob(j.Parent); p != 0 {
		parent := l.table.EnsureOptional(p)
		parent.OpenChildren++
		if l.table.At(p).State != core.Done {
			l.wait(h, x, j.Parent) // it has no other dependencies yet
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
	l.notify(&x.Children, h, ofChildren, success)
	if success && x.OpenChildren > 0 {
		return true
	}
	l.Closed(h, success && !x.ChildrenBroken)
	return false
}

// Closed notifies a job's successors and its parent that it is closed. It is called once. A parent whose last child is
// closed is closed too.
func (l *Links) Closed(h uint32, success bool) {
	for due := l.close(h, success); due != 0; due = l.closeDone(due) {
		if l.StepOver() {
			l.closeLater(due)
			return
		}
	}
}

// closeLater leaves it to a later step to close a job.
func (l *Links) closeLater(h uint32) {
	l.table.Optional(h).ClosesLater = true
	l.later(&rest{restKey: restKey{l.table.At(h).Seq, ofClosing}})
}

// Cancelled closes a done job that is removed before a step has closed it, or before its children are closed.
func (l *Links) Cancelled(h uint32) {
	x := l.table.Optional(h)
	l.Closed(h, x != nil && x.ClosesLater && !x.ChildrenBroken)
}

// close is Closed for one job. It returns the parent if that is to be closed now, otherwise zero.
func (l *Links) close(h uint32, success bool) (due uint32) {
	x := l.table.Optional(h)
	if x == nil || x.IsClosed {
		return 0
	}
	l.table.Touched++
	x.IsClosed, x.ClosesLater = true, false
	l.notify(&x.Successors, h, ofSuccessors, success)
	p := l.table.Handle(x.Parent)
	if x.Parent == 0 || p == 0 {
		return 0
	}
	e, parent := l.table.At(p), l.table.EnsureOptional(p)
	parent.OpenChildren--
	parent.ChildrenBroken = parent.ChildrenBroken || !success
	e.Set(table.Changed)
	l.table.Touch(p, e)
	if e.State != core.Done || parent.OpenChildren > 0 || parent.IsClosed {
		return 0
	}
	return p
}

// closeDone closes a job that is done and whose children are closed. It returns the job's own parent if that is to be
// closed now, otherwise zero.
func (l *Links) closeDone(h uint32) (due uint32) {
	due = l.close(h, !l.table.Optional(h).ChildrenBroken)
	if !l.table.At(h).Has(table.KeepsOutcome) {
		l.host.Remove(h)
	}
	return due
}

// wait adds a job that is not closed to the dependencies of job h. The caller sorts Waiting.
func (l *Links) wait(h uint32, x *table.Optional, seq uint64) {
	l.table.Linked++
	x.Waiting = append(x.Waiting, seq)
	l.table.AddDependent(l.dependents(x, seq), h)
}

// leave removes job h from the dependents of job seq, and leaves Waiting to the caller.
func (l *Links) leave(h uint32, x *table.Optional, seq uint64) {
	l.table.Linked++
	l.table.DropDependent(l.dependents(x, seq), h)
}

// dependents returns the list that has the jobs which wait for job seq as job x does: its children or its successors.
func (l *Links) dependents(x *table.Optional, seq uint64) **table.Dependents {
	if r := l.restFor(x, seq); r != nil {
		return &r.jobs
	}
	y := l.table.EnsureOptional(l.table.Handle(seq))
	if seq == x.Parent {
		return &y.Children
	}
	return &y.Successors
}

// notify tells the dependents in list that job p has ended, and leaves the rest for later.
func (l *Links) notify(list **table.Dependents, p uint32, kind restKind, success bool) {
	if *list == nil {
		return
	}
	e := l.table.At(p)
	r := &rest{
		restKey: restKey{e.Seq, kind}, jobs: *list,
		restMeta: restMeta{Success: success, Unstored: e.Unstored() || l.table.Optional(p).WasUnstored},
	}
	*list = nil
	for !l.StepOver() && l.notifyNext(r) {
	}
	if r.jobs != nil {
		l.later(r)
	}
}

// notifyNext tells a dependent that the job has ended; false: none is left.
func (l *Links) notifyNext(r *rest) bool {
	h := r.jobs.First()
	if h == 0 {
		return false
	}
	l.table.Touched++
	l.table.DropDependent(&r.jobs, h)
	l.predecessorEnded(h, r)
	return true
}

// predecessorEnded removes the job that has ended from the dependencies of job h, which has left its list. After its
// last dependency a blocked job is unblocked, unless a dependency ended without being done.
func (l *Links) predecessorEnded(h uint32, r *rest) {
	e, x := l.table.At(h), l.table.Optional(h)
	i, _ := slices.BinarySearch(x.Waiting, r.of)
	x.Waiting = slices.Delete(x.Waiting, i, i+1)
	if e.State != core.Blocked { // see Keep
		x.Shortened = l.table.Open
		return
	}
	breaks := l.breaks(e, x, r.of, r.Success)
	released := len(x.Waiting) == 0 && !e.Has(table.Broken)
	if breaks || released || r.Unstored {
		l.table.RewriteStatus(h, e)
	} else {
		x.Shortened = l.table.Open
	}
	if released {
		l.host.Unblock(h, e)
	}
}

// NowStored records that a job has just been stored. The records of the jobs that wait for it still say that it is
// not: they are rewritten when it ends, so that a restart does not take it for lost.
func (l *Links) NowStored(h uint32) {
	if x := l.table.Optional(h); x != nil && x.Successors.Len()+x.Children.Len() > 0 {
		x.WasUnstored = true
	}
}

// CountDependents counts the jobs that depend on a job and are not dead.
func (l *Links) CountDependents(h uint32) int {
	x := l.table.Optional(h)
	if x == nil {
		return 0
	}
	return x.Successors.Live() + x.Children.Live()
}

// DependentOutside returns the first job that depends on a job, is not dead and is not in the set; zero: there is
// none.
func (l *Links) DependentOutside(h uint32, set map[uint64]bool) uint64 {
	x := l.table.Optional(h)
	if x == nil {
		return 0
	}
	outside := uint64(0)
	for _, list := range [...]*table.Dependents{x.Successors, x.Children} {
		list.EachLive(func(d uint32) bool {
			l.table.Touched++
			if seq := l.table.At(d).Seq; !set[seq] {
				outside = seq
			}
			return outside == 0
		})
		if outside != 0 {
			break
		}
	}
	return outside
}

// Unlink removes the dependencies of a job that leaves Blocked although they are not done.
func (l *Links) Unlink(h uint32) {
	x := l.table.Optional(h)
	if x == nil {
		return
	}
	for _, seq := range x.Waiting {
		l.leave(h, x, seq)
	}
	x.Waiting, x.KeepsLinks = nil, false
}

// Keep restores the dependencies of a job that is dead because of one of them, after Unlink. So a workflow stays
// together, and can be retried as one; see Rejoin.
func (l *Links) Keep(h uint32, waiting []uint64) {
	if l.table.At(h).State != core.Dead {
		return
	}
	x := l.table.Optional(h)
	x.KeepsLinks = true
	for _, seq := range waiting {
		l.wait(h, x, seq)
	}
}

// Rejoin is for a job that leaves the dead set: it waits again for those kept dependencies that are not dead. It
// reports whether there are any.
func (l *Links) Rejoin(h uint32) bool {
	x := l.table.Optional(h)
	if x == nil {
		return false
	}
	kept := x.Waiting
	l.Unlink(h)
	for _, seq := range kept {
		if p := l.openJob(seq); p != 0 && l.table.At(p).State != core.Dead {
			l.wait(h, x, seq)
		}
	}
	return len(x.Waiting) > 0
}

// RestoreChild counts a restored job as an open child of its parent.
func (l *Links) RestoreChild(x *table.Optional) {
	if x.Parent == 0 {
		return
	}
	if p := l.table.Handle(x.Parent); p == 0 {
		if l.restFor(x, x.Parent) == nil {
			x.Parent = 0
		}
	} else if !x.IsClosed {
		l.table.EnsureOptional(p).OpenChildren++
	}
}

// RestoreWaiting links a blocked or dead job to the jobs that it still waits for. Its record may also name jobs that
// were done later.
func (l *Links) RestoreWaiting(h uint32, e *table.Entry, x *table.Optional) {
	waiting := x.Waiting
	x.Waiting, x.KeepsLinks = nil, e.State == core.Dead && len(waiting) > 0
	if e.State != core.Blocked && e.State != core.Dead {
		return
	}
	for _, seq := range waiting {
		if l.restFor(x, seq) != nil {
			l.wait(h, x, seq)
			continue
		}
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
		l.wait(h, x, seq)
		y = l.table.Optional(p)
		y.WasUnstored = y.WasUnstored || slices.Contains(l.unstored[e.Seq], seq)
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
