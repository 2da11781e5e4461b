package machine

import (
	"fmt"
	"slices"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/link"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// All clients share one lock, so an operation must not do work that grows with the number of jobs. Besides steps of
// constant or logarithmic time it may look at
//
//	freeEffort + 2 · LinkStep + 2 · (jobs that it names + rows that it asks for)
//
// jobs and links one after another (Table.Touched): effortOf. What is more is left for later operations or steps:
// pages of a purge or a list, rests of ends and deaths (package link), and other work in steps (steps). Counts are
// kept, not computed by a walk.
// Links that are made or cut (Table.Linked) are not judged, since a client has paid for each by a submission, but they
// count when a step or a page ends. Check returns the first operation that did more, so every test that calls Check
// enforces the bound.
//
// What is not counted, by design, with the time that it takes for 100,000 of them:
//
//   - The deadlines that move when the clock is set, and the rates of limits and the requests of workers that move with
//     them: 3 ms, once for each time that somebody sets the clock. Between two steps, deadlines of both clocks would be
//     due.
//   - The clients that wait for jobs when the store has failed, once.
//   - The registrations of a worker, of which Gearman allows 10,000, when it begins or ends to wait: 25 ms. A worker
//     that waited for part of its queues could miss a job.
//   - The queues that a client names in one operation, whose size the protocol limits: 6 ms. In a queue with limits a
//     search for a job moves, releases, blocks or passes some thousand lanes at most, see limit.Rules.OpenFront.
//   - The clients that watch a job, at most core.MaxWatchers, when its worker reports, and when it ends.
//   - The jobs that a client watches, when it logs in again and stays (CancelWaits): none may send it an event after
//     that.

// freeEffort is what every operation may touch.
const freeEffort = 64

// freshEffort starts the count of an operation, a Tick or the end of a client.
func (m *Machine) freshEffort() { m.table.Touched, m.table.Linked, m.looked = 0, 0, 0 }

// A client may send many operations at once, each of them within its bound. So a list of operations is interrupted once
// all of them together have done about as much as a few steps.

// work is how much the current operation has done, also of what is not judged: links, and registrations, queues and
// watchers (looked).
func (m *Machine) work() int { return m.table.Touched + m.table.Linked + m.looked }

// workOver reports whether a call is interrupted after so much work. A call with atomic lists is not: a front-end
// expects all of it in one commit.
func (m *Machine) workOver(done int, call []core.Op) bool {
	return done >= 4*m.links.Step() && !slices.ContainsFunc(call, func(op core.Op) bool {
		_, is := op.(*core.Atomic)
		return is
	})
}

// judge records an operation that has touched more than it may.
func (m *Machine) judge(op core.Op) {
	if most := m.effortOf(op); m.table.Touched > most && m.overrun == nil && (linksHost{m}).TakesSteps() {
		m.overrun = fmt.Errorf("%T has touched %d jobs and links, and may touch %d", op, m.table.Touched, most)
	}
}

// judgeStep is judge for what no operation asks for, with a budget of deadlines.
func (m *Machine) judgeStep(what string, budget int) {
	if most := freeEffort + 2*m.links.Step() + 2*budget; m.table.Touched > most && m.overrun == nil {
		m.overrun = fmt.Errorf("%s has touched %d jobs and links, and may touch %d", what, m.table.Touched, most)
	}
}

// effortOf is how many jobs and links an operation may touch.
func (m *Machine) effortOf(op core.Op) int {
	asks := 0
	switch op := op.(type) {
	case *core.Atomic:
		for _, one := range op.Ops {
			asks += m.effortOf(one)
		}
	case *core.Move:
		if asks = len(op.After); asks > 0 {
			asks += 2 * link.MaxWalk
		}
	case *core.Cancel:
		asks = len(op.Also)
	case *core.Purge:
		asks = purgeLook * removals(op.Limit)
	case *core.PurgeBatches:
		asks = removals(op.Limit)
	case *core.DropQueue:
		asks = purgeLook * removals(op.Limit)
	case *core.ListLimits:
		asks = 2 * core.MaxLimits // a page, and the names and limits of its last row
		if op.Queue != "" || op.Name != "" {
			asks = 5 * limit.MaxLooks // leased jobs, all types, all keys, and twice the lanes
		}
	case *core.ListJobs:
		asks = m.effort.Look
	}
	return freeEffort + 2*m.links.Step() + 2*asks
}

// steps is the work that operations have left for later steps, so that none holds the lock for long; the oldest first.
// An operation does what a step may, and leaves the rest. A step begins when TimerSteps is due, and goes on until it
// has touched as much as a step may. The work is not stored: a start does all of it, because it releases what
// connections hold, serves no client yet, and looks for what is due in every batch. What must be stored, package link
// leaves.
type steps struct {
	left  []func() (more bool) // each does the next part of one work
	timer timer.ID
}

// spent reports whether the current operation or step leaves everything else for later.
func (m *Machine) spent() bool { return m.links.StepOver() }

// inSteps does some work now, and leaves the rest for later steps. next does the next part of it, and counts what it
// touches.
func (m *Machine) inSteps(next func() (more bool)) {
	for !m.spent() {
		if !next() {
			return
		}
	}
	m.later(next)
}

// later leaves work for later steps.
func (m *Machine) later(next func() (more bool)) {
	m.steps.left = append(m.steps.left, next)
	if m.steps.timer == 0 {
		m.steps.timer = m.table.Timers.Add(m.table.Now, timer.Owner{Kind: table.TimerSteps})
	}
}

// stepsDue begins a step.
func (m *Machine) stepsDue() {
	m.steps.timer = 0
	at, isBehind := m.links.Behind()
	if !isBehind {
		m.freshEffort()
		m.step()
	}
	if len(m.steps.left) > 0 && m.steps.timer == 0 { // not if a work has left more
		m.steps.timer = m.table.Timers.Add(at, timer.Owner{Kind: table.TimerSteps})
	}
}

// step does some of the work that is left.
func (m *Machine) step() {
	for len(m.steps.left) > 0 && !m.spent() {
		if next := m.steps.left[0]; !next() {
			m.steps.left[0] = nil // next may have left more at the end
			if m.steps.left = m.steps.left[1:]; len(m.steps.left) == 0 {
				m.steps.left = nil
			}
		}
		m.actor = nil
		m.decideBroken()
	}
}
