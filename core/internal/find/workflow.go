package find

import (
	"slices"

	"broker/core"
)

// climbCost is how many examined jobs a climb from a job to another one counts as.
const climbCost = 4

// Limits of what lists keep between their pages. The list that was continued last may exceed maxKnown: it needs an
// entry for each job that it climbs over.
const (
	maxClimbs = 8       // lists
	maxKnown  = 1 << 20 // jobs and batches of all lists
)

// Climbs keeps, between the pages of a list, which jobs are known to be in the workflow of its filter. A page may spend
// all its effort on one job at the end of a long chain; the next page then continues. A list shows the workflow as it
// was when a page examined it. The zero value is ready to use.
type Climbs struct{ lists []*climb }

// climb is what a list knows about a workflow.
type climb struct {
	workflow uint64
	since    core.Instant    // start time of the list
	below    map[uint64]bool // whether a job or batch is the workflow, or is below it
	open     []uint64        // the path to the job or batch that is examined next
}

// find returns the climb of a list; nil: there is none.
func (c *Climbs) find(workflow uint64, since core.Instant) *climb {
	for _, x := range c.lists {
		if x.workflow == workflow && x.since == since {
			return x
		}
	}
	return nil
}

// of finds or makes the climb of a list. It may forget the lists that were continued the longest time ago.
func (c *Climbs) of(workflow uint64, since core.Instant) *climb {
	x := c.find(workflow, since)
	if x == nil {
		x = &climb{workflow: workflow, since: since, below: map[uint64]bool{workflow: true}}
	}
	c.drop(x)
	known := 0
	for _, y := range c.lists {
		known += len(y.below)
	}
	for len(c.lists) > 0 && (len(c.lists) == maxClimbs || known > maxKnown) {
		known -= len(c.lists[0].below)
		c.lists = slices.Delete(c.lists, 0, 1)
	}
	c.lists = append(c.lists, x)
	return x
}

// drop forgets a list that has ended.
func (c *Climbs) drop(x *climb) {
	c.lists = slices.DeleteFunc(c.lists, func(y *climb) bool { return x == y })
}

// inWorkflow reports whether a job or batch is the workflow in the filter, or is below it: a child, a member, a
// callback, or a job that waits for one of these. There are no cycles, and each link is followed only once for a list.
// If that needs more effort than is left, the search becomes undecided.
func (s *Search) inWorkflow(number uint64) bool {
	if s.undecided {
		return false
	}
	if s.climb == nil {
		s.climb = s.climbs.of(s.f.Workflow, s.since)
	}
	x := s.climb
	if below, known := x.below[number]; known {
		return below
	}
	for x.open = append([]uint64{number}, x.open...); len(x.open) > 0; {
		if s.spent > s.effort.Look {
			s.undecided = true
			return false
		}
		n := x.open[len(x.open)-1]
		if _, known := x.below[n]; known {
			x.open = x.open[:len(x.open)-1]
			continue
		}
		is, before := false, len(x.open)
		s.above(n, func(above uint64) {
			s.spent += climbCost
			if below, known := x.below[above]; known {
				is = is || below
			} else {
				x.open = append(x.open, above)
			}
		})
		if is || len(x.open) == before {
			x.below[n] = is
			x.open = x.open[:before-1]
		}
	}
	return x.below[number]
}

// above calls f for everything that a job or batch is directly below.
func (s *Search) above(number uint64, f func(uint64)) {
	if parent, is := s.host.BatchParent(number); is {
		f(parent)
		return
	}
	h := s.table.Handle(number)
	if h == 0 {
		return
	}
	x := s.table.Optional(h)
	if x == nil {
		return
	}
	for _, one := range [...]uint64{x.Parent, x.Batch, x.CallbackFor} {
		if one != 0 {
			f(one)
		}
	}
	for _, seq := range x.Waiting {
		f(seq)
	}
}
