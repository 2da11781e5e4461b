package table

import (
	"broker/core"
	"broker/core/internal/queue"
)

// Each state except ready has a sorted list of its jobs, so that any page is found quickly. Scheduled and retrying jobs
// are sorted by due time, leased jobs by the start of the lease, done and dead jobs by the time they became so, and
// blocked jobs by number. Ready jobs are found through their queues. A list costs about 4.4 bytes per job.
//
// Call Enlist after setting the fields that determine the position, and Unlist before changing them.

// StateLists holds the list of each state that has one.
type StateLists [len(core.States) + 1]queue.List

// Enlist adds a job to the lists of its state.
func (t *Table) Enlist(h uint32, e *Entry) {
	if e.Has(Listed) {
		return
	}
	switch e.State {
	case core.Gone, core.Ready:
		return
	case core.Scheduled, core.Blocked, core.Leased:
	case core.Done:
		t.queueLists(e)[e.State].Push(h, t.sooner)
		if e.Has(KeptByQueue) {
			q := t.queues[e.Queue]
			if q.KeptDone == nil {
				q.KeptDone = new(queue.List)
			}
			q.KeptDone.Push(h, t.sooner)
		}
	case core.Retrying, core.Dead:
		t.queueLists(e)[e.State].Push(h, t.sooner)
		t.joinGroup(h, e)
	}
	e.Set(Listed)
	t.CountFailure(h, e, 1)
	t.ByState[e.State].Push(h, t.sooner)
}

// Unlist removes a job from the lists of its state; it may be called twice.
func (t *Table) Unlist(h uint32, e *Entry) {
	if e.Has(Listed) {
		t.leaveLists(h, e)
	}
}

func (t *Table) leaveLists(h uint32, e *Entry) {
	t.CountFailure(h, e, -1)
	e.Clear(Listed)
	t.ByState[e.State].Remove(h, t.sooner)
	switch e.State {
	case core.Gone, core.Ready, core.Scheduled, core.Blocked, core.Leased:
	case core.Done:
		t.queueLists(e)[e.State].Remove(h, t.sooner)
		if e.Has(KeptByQueue) {
			t.queues[e.Queue].KeptDone.Remove(h, t.sooner)
		}
	case core.Retrying, core.Dead:
		t.queueLists(e)[e.State].Remove(h, t.sooner)
		t.LeaveGroup(h, e)
	}
}

// queueLists returns the lists of a job's queue. It creates them for the first job that needs one.
func (t *Table) queueLists(e *Entry) *StateLists {
	q := t.queues[e.Queue]
	if q.ByState == nil {
		q.ByState = new(StateLists)
	}
	return q.ByState
}

// ListedAt returns the time that determines a job's position in the list of its state.
func (e *Entry) ListedAt() core.Instant {
	switch e.State {
	case core.Scheduled, core.Retrying, core.Done, core.Dead:
		return e.ReadyAt
	case core.Leased:
		return e.LeasedAt
	case core.Gone, core.Blocked, core.Ready:
	}
	return 0
}
