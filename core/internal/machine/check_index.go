package machine

import (
	"maps"
	"slices"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/telemetry"
)

// indexed checks that a job is in the lists of its state and its failure group.
func (c *checker) indexed(e *entry) {
	if wants := e.state != core.Ready; e.has(listed) != wants {
		c.fail("job %d is %v, in the list of its state: %v", e.seq, e.state, e.has(listed))
	}
	if e.state != core.Retrying && e.state != core.Dead {
		return
	}
	c.failures[failureKey{e.state, e.holder, e.kind, e.queue}]++
	if e.holder != 0 {
		c.groups[e.holder]++
	}
}

// tagsOf counts the tags of a job, which must be those of its payload.
func (c *checker) tagsOf(h uint32) {
	for n := c.m.tags.first[h]; n != 0; n = c.m.tags.links[n].next {
		c.tags[c.m.tags.links[n].tag]++
	}
	if c.m.tags.first[h] != 0 {
		c.tagged++
	}
	if j := c.m.jobs.payload(h); j != nil {
		want := []string{}
		for _, tag := range j.Tags {
			if !slices.Contains(want, tag) {
				want = append(want, tag)
			}
		}
		if have := c.m.tagsOf(h); !slices.Equal(have, want) {
			c.fail("job %d has the tags %q, found by %q", j.Seq, j.Tags, have)
		}
	}
}

// lists checks the lists of states and of failure groups.
func (c *checker) lists() {
	m := c.m
	for _, s := range core.States {
		if s != core.Ready {
			c.sorted("all queues", &m.byState[s], m.stats.Jobs[s], m.sooner, func(e *entry) bool { return e.state == s })
		}
	}
	for n, q := range m.queues {
		if q == nil {
			continue
		}
		for _, s := range []core.State{core.Retrying, core.Done, core.Dead} {
			if q.byState != nil {
				c.sorted(q.name, &q.byState[s], q.count[s], m.sooner, func(e *entry) bool {
					return e.state == s && int(e.queue) == n
				})
			} else if q.count[s] > 0 {
				c.fail("queue %s has %d %v jobs and no list of them", q.name, q.count[s], s)
			}
		}
	}
	if !maps.Equal(c.failures, m.groups.counts) {
		c.fail("failures are counted as %v, want %v", m.groups.counts, c.failures)
	}
	c.names("failure group", &m.groups.names, c.groups)
	for n, jobs := range c.groups {
		c.sorted(m.groups.names.names[n], &m.groups.jobs[n], jobs, m.older, func(e *entry) bool {
			return (e.state == core.Retrying || e.state == core.Dead) && e.holder == n
		})
	}
	c.names("tag", &m.tags.names, c.tags)
	for n, jobs := range c.tags {
		c.sorted(m.tags.names.names[n], &m.tags.jobs[n], jobs, m.older, func(e *entry) bool {
			return m.tags.has(m.bySeq.get(e.seq), n)
		})
	}
	if len(m.tags.first) != c.tagged {
		c.fail("%d jobs in the index of tags, %d have tags", len(m.tags.first), c.tagged)
	}
	if !slices.IsSorted(m.bySeq.order) {
		c.fail("pages of numbers are out of order")
	}
	for n := range m.bySeq.pages {
		if _, there := slices.BinarySearch(m.bySeq.order, n); !there {
			c.fail("page %d of numbers is not in the order of pages", n)
		}
	}
}

// meters checks the meters.
func (c *checker) meters() {
	var queues []*telemetry.Queue
	for _, q := range c.m.queues[1:] {
		if q != nil {
			queues = append(queues, &q.watch)
		}
	}
	for _, fault := range c.m.meters.Check(queues) {
		c.fail("%s", fault)
	}
}

// sorted checks the length, the order and the members of a list.
func (c *checker) sorted(name string, l *queue.List, want int, before queue.Before, member func(*entry) bool) {
	if l.Len() != want {
		c.fail("%s: %d jobs in a list, want %d", name, l.Len(), want)
	}
	last, walk := uint32(0), l.From(nil)
	for h := walk.Next(); h != 0; h = walk.Next() {
		if e := c.m.jobs.at(h); !member(e) {
			c.fail("%s: job %d is %v and in a list where it does not belong", name, e.seq, e.state)
		}
		if last != 0 && !before(last, h) {
			c.fail("%s: job %d is out of order", name, c.m.jobs.at(h).seq)
		}
		last = h
	}
}
