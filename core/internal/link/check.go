package link

import (
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// Check verifies links: Job for every job with an Optional, then End.
type Check struct {
	l    *Links
	fail func(format string, args ...any)
	open map[uint64]int // children not closed, by parent

	named, listed int // links in Waiting, in lists of dependents
}

// NewCheck starts a check, which calls fail for each violation.
func (l *Links) NewCheck(fail func(format string, args ...any)) *Check {
	return &Check{l: l, fail: fail, open: map[uint64]int{}}
}

// Job checks both ends of a job's links.
func (c *Check) Job(e *table.Entry, x *table.Optional) {
	l := c.l
	for _, seq := range x.Waiting {
		if l.restFor(x, seq) != nil {
			continue // End checks the lists of rests
		}
		p := l.table.Handle(seq)
		if p == 0 {
			c.fail("job %d waits for job %d, which is gone", e.Seq, seq)
			continue
		}
		y := l.table.Optional(p)
		if y != nil && y.IsClosed {
			c.fail("job %d waits for job %d, which is closed", e.Seq, seq)
		}
	}
	c.named += len(x.Waiting)
	c.list(e.Seq, x.Successors, false)
	c.list(e.Seq, x.Children, true)
	if !slices.IsSorted(x.Waiting) {
		c.fail("job %d waits for %v, out of order", e.Seq, x.Waiting)
	}
	if len(x.Waiting) > 0 && e.State != core.Blocked && e.State != core.Dead {
		c.fail("job %d is %v and waits for %v", e.Seq, e.State, x.Waiting)
	}
	if x.Parent != 0 && !x.IsClosed && l.table.Handle(x.Parent) != 0 {
		c.open[x.Parent]++
	}
	if x.ClosesLater && (e.State != core.Done || x.IsClosed || l.rests[restKey{e.Seq, ofClosing}] == nil) {
		c.fail("job %d is %v, closed: %v, and to be closed later", e.Seq, e.State, x.IsClosed)
	}
	if e.State == core.Done && !e.Has(table.KeepsOutcome) && x.OpenChildren == 0 && !x.ClosesLater {
		c.fail("job %d is done, stays for its children and has none", e.Seq)
	}
	if e.State == core.Done && x.OpenChildren == 0 && !x.IsClosed && !x.ClosesLater {
		c.fail("job %d is done, has no open children and is not closed", e.Seq)
	}
}

// list checks that the jobs in a list of dependents of a job wait for it, as its children or as its successors.
func (c *Check) list(of uint64, list *table.Dependents, children bool) {
	live, all := 0, 0
	list.Each(func(h uint32) bool {
		d, y := c.l.table.At(h), c.l.table.Optional(h)
		if _, waits := slices.BinarySearch(y.Waiting, of); !waits || (y.Parent == of) != children {
			c.fail("job %d lists job %d, which does not wait for it, or in another way", of, d.Seq)
		}
		if y.KeepsLinks != (d.State == core.Dead) {
			c.fail("job %d is %v and keeps its dependencies: %v", d.Seq, d.State, y.KeepsLinks)
		}
		if all++; d.State != core.Dead {
			live++
		}
		return true
	})
	if list.Len() != all || list.Live() != live {
		c.fail("job %d counts %d and %d dependents, has %d and %d", of, list.Len(), list.Live(), all, live)
	}
	c.listed += all
}

// End compares each job's count of open children with the real number, checks what is left for later steps, and
// returns the number of deadlines in use.
func (c *Check) End() (timers int) {
	for _, r := range c.l.queue {
		if c.l.rests[r.restKey] != r {
			c.fail("what is left of job %d is not found", r.of)
		}
		c.list(r.of, r.jobs, r.kind == ofChildren)
	}
	if len(c.l.queue) != len(c.l.rests) {
		c.fail("%d ends are left in a queue, %d are found", len(c.l.queue), len(c.l.rests))
	}
	if c.named != c.listed {
		c.fail("jobs wait for %d jobs, and %d know of it", c.named, c.listed)
	}
	c.l.table.EachJob(func(h uint32, e *table.Entry) {
		counts := 0
		if x := c.l.table.Optional(h); x != nil {
			counts = x.OpenChildren
		}
		if counts != c.open[e.Seq] {
			c.fail("job %d counts %d open children, has %d", e.Seq, counts, c.open[e.Seq])
		}
	})
	if c.l.timer != 0 {
		timers++
	}
	return timers
}
