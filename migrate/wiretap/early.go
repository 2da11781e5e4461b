package wiretap

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// holdFor is the time for which a delivery may wait for the reply to its submission.
const holdFor = time.Second

// earlyDeliveries keeps deliveries that arrived before the reply to the submission of their job, which comes over
// another connection. Later requests of the connection wait for the delivery. Only the player uses it, except for
// submitting.
type earlyDeliveries struct {
	submitting atomic.Int64 // submissions seen but not answered by both servers yet
	lines      map[int]*heldLine
	missed     time.Time // the last time that a delivery waited in vain
}

// heldLine is a connection whose first task waits.
type heldLine struct {
	since time.Time
	tasks []task
}

// hold keeps a delivery of an unknown job if its submission may still be played.
func (e *earlyDeliveries) hold(t task) bool {
	if t.late || t.x.up == nil || len(idsOf(t.x.up)) == 0 || e.submitting.Load() == 0 ||
		time.Since(e.missed) < time.Second {
		return false
	}
	if e.lines == nil {
		e.lines = make(map[int]*heldLine)
	}
	t.late = true
	e.lines[t.line] = &heldLine{since: time.Now(), tasks: []task{t}}
	return true
}

// keep queues a task behind a waiting delivery.
func (e *earlyDeliveries) keep(t task) bool {
	l := e.lines[t.line]
	if l != nil {
		l.tasks = append(l.tasks, t)
	}
	return l != nil
}

// all lists the connections that wait.
func (e *earlyDeliveries) all() []int { return slices.Sorted(maps.Keys(e.lines)) }

// ready lists the connections whose wait is over.
func (e *earlyDeliveries) ready(knows func(line int, id string) bool, late bool) (lines []int) {
	for _, line := range e.all() {
		l := e.lines[line]
		found := knows(line, idsOf(l.tasks[0].x.up)[0])
		if found || late && time.Since(l.since) > holdFor {
			lines = append(lines, line)
		}
		if !found && late && time.Since(l.since) > holdFor {
			e.missed = time.Now()
		}
	}
	return lines
}

// release returns the tasks of a connection.
func (e *earlyDeliveries) release(line int) []task {
	tasks := e.lines[line].tasks
	delete(e.lines, line)
	return tasks
}

// due fires when the wait of a connection may be over; nil: none waits.
func (e *earlyDeliveries) due() <-chan time.Time {
	if len(e.lines) == 0 {
		return nil
	}
	return time.After(holdFor / 4)
}
