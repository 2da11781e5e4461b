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
	c.list(e, x.Successors, func(y *table.Optional) bool { return y.Parent != e.Seq })
	c.list(e, x.Children, func(y *table.Optional) bool { return y.Parent == e.Seq })
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

// list checks that the jobs in a list of dependents of a job wait for it. belongs reports whether such a job belongs
// in this list.
func (c *Check) list(e *table.Entry, list *table.Dependents, belongs func(y *table.Optional) bool) {
	live, all := 0, 0
	list.Each(func(h uint32) bool {
		d, y := c.l.table.At(h), c.l.table.Optional(h)
		if _, waits := slices.BinarySearch(y.Waiting, e.Seq); !waits || !belongs(y) {
			c.fail("job %d lists job %d, which does not wait for it, or in another way", e.Seq, d.Seq)
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
		c.fail("job %d counts %d and %d dependents, has %d and %d", e.Seq, list.Len(), list.Live(), all, live)
	}
	c.listed += all
}

// End compares each job's count of open children with the real number.
func (c *Check) End() {
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
}
