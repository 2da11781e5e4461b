package wiretap

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// holdFor is the time for which a delivery may wait for the reply to its submission.
const holdFor = 20 * time.Millisecond

// ahead keeps deliveries that arrived before the reply to the submission of their job. The two come over different connections,
// so that can happen. Later requests of the connection wait for the delivery. Only the player uses ahead, except for
// submitting.
type ahead struct {
	submitting atomic.Int64 // submissions seen but not played yet
	lines      map[int]*heldLine
	missed     time.Time // the last time that a delivery waited in vain
}

// heldLine is a connection whose first task waits.
type heldLine struct {
	since time.Time
	tasks []task
}

// hold keeps a delivery of an unknown job if its submission may still be played.
func (a *ahead) hold(t task) bool {
	if t.late || t.x.up == nil || len(idsOf(t.x.up)) == 0 || a.submitting.Load() == 0 || time.Since(a.missed) < time.Second {
		return false
	}
	if a.lines == nil {
		a.lines = make(map[int]*heldLine)
	}
	t.late = true
	a.lines[t.line] = &heldLine{since: time.Now(), tasks: []task{t}}
	return true
}

// keep queues a task behind a waiting delivery.
func (a *ahead) keep(t task) bool {
	l := a.lines[t.line]
	if l != nil {
		l.tasks = append(l.tasks, t)
	}
	return l != nil
}

// ready lists the connections whose wait is over.
func (a *ahead) ready(knows func(line int, id string) bool, late bool) (lines []int) {
	for _, line := range slices.Sorted(maps.Keys(a.lines)) {
		l := a.lines[line]
		found := knows(line, idsOf(l.tasks[0].x.up)[0])
		if found || late && time.Since(l.since) > holdFor {
			lines = append(lines, line)
		}
		if !found && late && time.Since(l.since) > holdFor {
			a.missed = time.Now()
		}
	}
	return lines
}

// release returns the tasks of a connection.
func (a *ahead) release(line int) []task {
	tasks := a.lines[line].tasks
	delete(a.lines, line)
	return tasks
}

// due fires when the wait of a connection may be over; nil: none waits.
func (a *ahead) due() <-chan time.Time {
	if len(a.lines) == 0 {
		return nil
	}
	return time.After(holdFor / 4)
}
