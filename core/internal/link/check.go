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
}

// NewCheck starts a check, which calls fail for each violation.
func (l *Links) NewCheck(fail func(format string, args ...any)) *Check {
	return &Check{l: l, fail: fail, open: map[uint64]int{}}
}

// Job checks both ends of a job's links.
func (c *Check) Job(e *table.Entry, x *table.Optional) {
	l := c.l
	for _, seq := range x.Waiting {
		p := l.table.Handle(seq)
		if p == 0 {
			c.fail("job %d waits for job %d, which is gone", e.Seq, seq)
			continue
		}
		y := l.table.Optional(p)
		if y == nil || !slices.Contains(y.Successors, e.Seq) && !slices.Contains(y.Children, e.Seq) {
			c.fail("job %d waits for job %d, which does not know", e.Seq, seq)
		}
		if y != nil && y.IsClosed {
			c.fail("job %d waits for job %d, which is closed", e.Seq, seq)
		}
	}
	if !slices.IsSorted(x.Waiting) {
		c.fail("job %d waits for %v, out of order", e.Seq, x.Waiting)
	}
	if len(x.Waiting) > 0 && e.State != core.Blocked && e.State != core.Dead {
		c.fail("job %d is %v and waits for %v", e.Seq, e.State, x.Waiting)
	}
	if x.Parent != 0 && !x.IsClosed && l.table.Handle(x.Parent) != 0 {
		c.open[x.Parent]++
	}
	if e.State == core.Done && !e.Has(table.KeepsOutcome) && x.OpenChildren == 0 {
		c.fail("job %d is done, stays for its children and has none", e.Seq)
	}
	if e.State == core.Done && x.OpenChildren == 0 && !x.IsClosed {
		c.fail("job %d is done, has no open children and is not closed", e.Seq)
	}
}

// End compares each job's count of open children with the real number.
func (c *Check) End() {
	c.l.table.EachJob(func(h uint32, e *table.Entry) {
		counts := 0
		if x := c.l.table.Optional(h); x != nil {
			counts = x.OpenChildren
		}
		if counts != c.open[e.Seq] {
			c.fail("job %d counts %d open children, has %d", e.Seq, counts, c.open[e.Seq])
		}
	})
}
