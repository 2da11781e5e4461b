package table

import (
	"broker/core"
	"broker/core/internal/queue"
)

// Queue is a queue as the table knows it: its name and its jobs.
type Queue struct {
	Name      string
	Ready     queue.List
	ByState   *StateLists
	Scheduled queue.List  // for lists; the timer decides when they are due
	KeptDone  *queue.List // jobs kept only for the retention of the queue; nil: there was none yet
	Count     [len(core.States) + 1]int
	Class     [3]int // ready jobs by class; see ClassHigh
	Hidden    bool   // purged: not listed until a job is ready here or a client names it
}

// Unfinished is the number of unfinished jobs.
func (q *Queue) Unfinished() int {
	return q.Count[core.Scheduled] + q.Count[core.Blocked] + q.Count[core.Ready] + q.Count[core.Leased] +
		q.Count[core.Retrying]
}

// Jobs is the number of all jobs of a queue.
func (q *Queue) Jobs() int { return q.Unfinished() + q.Count[core.Done] + q.Count[core.Dead] }

// Kept is the number of jobs in KeptDone.
func (q *Queue) Kept() int {
	if q.KeptDone == nil {
		return 0
	}
	return q.KeptDone.Len()
}

// ListOf returns the queue's list of its jobs in a state; nil: there is none yet.
func (q *Queue) ListOf(state core.State) *queue.List {
	switch state {
	case core.Ready:
		return &q.Ready
	case core.Scheduled:
		return &q.Scheduled
	case core.Retrying, core.Done, core.Dead:
		if q.ByState != nil {
			return &q.ByState[state]
		}
	case core.Gone, core.Blocked, core.Leased:
	}
	return nil
}

// AddQueue numbers a queue and adds it to the list of names.
func (t *Table) AddQueue(q *Queue) (n uint32) {
	if k := len(t.freeQ); k > 0 {
		n, t.freeQ = t.freeQ[k-1], t.freeQ[:k-1]
		t.queues[n] = q
	} else {
		n = uint32(len(t.queues))
		t.queues = append(t.queues, q)
	}
	t.names[q.Name] = n
	t.addName(n, q.Name)
	return n
}

// RemoveQueue removes a queue; its number may be reused.
func (t *Table) RemoveQueue(n uint32) {
	t.Show(n) // it counts as hidden no longer
	delete(t.names, t.queues[n].Name)
	t.removeName(n)
	t.queues[n] = nil
	t.freeQ = append(t.freeQ, n)
}

// QueueNumber returns the number of the queue with a name; zero: there is none. It remembers the last queue, because
// consecutive operations often name the same queue.
func (t *Table) QueueNumber(name string) uint32 {
	if q := t.queues[t.lastNamed]; q == nil || q.Name != name {
		t.lastNamed = t.names[name]
	}
	return t.lastNamed
}

// QueueCount is how many queues there are.
func (t *Table) QueueCount() int { return len(t.names) }

// SetState is the only function that sets Entry.State; it updates the counters of the queue and of all jobs.
func (t *Table) SetState(e *Entry, to core.State) {
	if e.Has(Listed) {
		panic("table: a job leaves its state and stays in its list")
	}
	q, from := t.queues[e.Queue], e.State
	e.State = to
	if from != core.Gone {
		q.Count[from]--
		t.InState[from]--
	}
	if to != core.Gone {
		q.Count[to]++
		t.InState[to]++
	}
	if from == core.Ready {
		t.countClass(q, e.Priority(), -1)
	} else if to == core.Ready {
		t.countClass(q, e.Priority(), 1)
	}
}

func (t *Table) countClass(q *Queue, priority int64, n int) {
	class := classOf(priority)
	q.Class[class] += n
	t.Class[class] += n
}

// Priority classes, as in gearmand and maxqueue.
const (
	ClassHigh = iota
	ClassNormal
	ClassLow
)

// classOf returns the class of a priority.
func classOf(priority int64) int {
	switch {
	case priority > 0:
		return ClassHigh
	case priority == 0:
		return ClassNormal
	}
	return ClassLow
}

// SetPriority moves a ready job to the class of its new priority.
func (t *Table) SetPriority(e *Entry, priority int64) {
	if q := t.queues[e.Queue]; e.State == core.Ready {
		t.countClass(q, e.Priority(), -1)
		t.countClass(q, priority, 1)
	}
	e.setPriority(priority)
}

// QueueAt is the queue with a number.
func (t *Table) QueueAt(n uint32) *Queue { return t.queues[n] }
