package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/link"
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
//   - The deadlines that move when the clock is set: 3 ms, once for each time that somebody sets the clock. Between two
//     steps, deadlines of both clocks would be due.
//   - The registrations of a worker, of which Gearman allows 10,000, when it begins or ends to wait: 25 ms. A worker
//     that waited for part of its queues could miss a job.
//   - The queues that a client names in one operation, whose size the protocol limits: 6 ms.
//   - The jobs that a client watches, when it logs in again and stays (CancelWaits): none may send it an event after
//     that.

// freeEffort is what every operation may touch.
const freeEffort = 64

// freshEffort starts the count of an operation, a Tick or the end of a client.
func (m *Machine) freshEffort() { m.table.Touched, m.table.Linked = 0, 0 }

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
