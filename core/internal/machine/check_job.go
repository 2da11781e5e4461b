package machine

import (
	"slices"

	"broker/core"
)

// job checks one job and counts it.
func (c *checker) job(h uint32, e *entry) {
	m := c.m
	c.jobs++
	q := c.queue(e.queue)
	q.state[e.state]++
	c.timer(e.stateTimer != 0)
	c.timer(e.expiryTimer != 0)
	if m.bySeq.get(e.seq) != h {
		c.fail("job %d is not found by its number", e.seq)
	}
	if e.id != (digest{}) {
		c.ids++
		if m.byID[e.id] != h {
			c.fail("job %d is not found by its id", e.seq)
		}
	}
	if e.unique != (digest{}) {
		c.uniques++
	}
	if e.kind != 0 {
		c.types[e.kind]++
	}
	if j := m.jobs.payload(h); j != nil {
		c.cached += payloadBytes(j)
	} else if !e.has(payloadStored) {
		c.fail("job %d has no payload in memory and none on disk", e.seq)
	}
	if e.has(dirty) && !slices.Contains(m.changed, h) {
		c.fail("job %d has changed and nobody will store it", e.seq)
	}
	c.sideMaps(h, e)
	if e.has(hasTransient) {
		c.notes++
		c.collected += len(m.transients[h].data)
	}
	if e.has(keptByQueue) {
		q.keptDone++
		if e.state != core.Done || !e.has(keepsOutcome|listed) || e.expiresAt == 0 {
			c.fail("job %d is %v and kept as a finished one", e.seq, e.state)
		}
	}
	if c.m.queues[e.queue].lanes != nil && !c.m.queues[e.queue].sorting && e.state != core.Done && (!e.has(hasOptional) || m.optionals[h].lane == nil) {
		c.fail("job %d is in no lane", e.seq)
	}
	c.state(h, e)
	c.indexed(e)
	c.tagsOf(h)
	c.orderPlace(h, e)
	c.held(h, e, q)
	c.watched(h, e)
	if x := m.optionalState(h); x != nil {
		c.extras++
		c.timer(x.slotTimer != 0)
		c.timer(x.startTimer != 0)
		c.lane(h, e, x)
		if e.state == core.Ready && x.startBefore != 0 && x.startTimer == 0 {
			c.fail("job %d is ready and its time to start never ends", e.seq)
		}
		c.links(e, x)
		c.member(e, x)
	}
}

// sideMaps checks what only some jobs have, beside their entries.
func (c *checker) sideMaps(h uint32, e *entry) {
	m := c.m
	if e.has(hasOptional) != (m.optionals[h] != nil) || e.has(hasTransient) != (m.transients[h] != nil) {
		c.fail("job %d: flags and side maps disagree", e.seq)
	}
	if at, ok := m.firstFails[h]; ok {
		c.firstFails++
		if at == 0 || e.fails == 0 {
			c.fail("job %d with %d failures failed first at %d", e.seq, e.fails, at)
		}
	}
	if _, ok := m.traces[h]; ok != e.has(traced) {
		c.fail("job %d: flag and map of traces disagree", e.seq)
	}
	if _, ok := m.tallies[h]; ok && !e.has(tallyMoves|tallyFirstLease) {
		c.fail("job %d has a tally and keeps none", e.seq)
	} else if ok {
		c.tallies++
	}
	if e.has(traced) {
		c.traces++
	}
	if e.has(stopping) {
		c.stops++
		if e.state != core.Leased || m.stops[e.seq] == 0 {
			c.fail("job %d is %v and to stop since %d", e.seq, e.state, m.stops[e.seq])
		}
	}
}

// state checks which data a job in its state must and must not have.
func (c *checker) state(h uint32, e *entry) {
	switch e.state {
	case core.Scheduled, core.Retrying:
		if e.stateTimer == 0 {
			c.fail("job %d is %v without a deadline", e.seq, e.state)
		}
	case core.Leased:
		if e.stateTimer == 0 && e.holderKind != core.HeldByConn {
			c.fail("job %d is leased without a time limit or a connection", e.seq)
		}
	case core.Blocked:
		x := c.m.optionalState(h)
		if !e.has(broken) && (x == nil || len(x.waiting) == 0 && x.callbackFor == 0) {
			c.fail("job %d is blocked by nothing", e.seq)
		}
	case core.Ready, core.Done, core.Dead:
	case core.Gone:
		c.fail("job %d is gone and still there", e.seq)
	}
	if e.stateTimer != 0 && (e.state == core.Ready || e.state == core.Blocked || !e.state.Unfinished()) {
		c.fail("job %d is %v and has a deadline", e.seq, e.state)
	}
	if e.unique != (digest{}) && !e.state.Unfinished() {
		c.fail("job %d is %v and keeps its unique key", e.seq, e.state)
	}
}

// held checks the holder of a job, and counts the lease.
func (c *checker) held(h uint32, e *entry, q *recount) {
	if e.has(held) != (e.state == core.Leased) {
		c.fail("job %d is %v, in hands: %v", e.seq, e.state, e.has(held))
	}
	x := c.m.optionalState(h)
	if x != nil && x.slot == slotTaken {
		q.slots += c.m.costOf(h)
		q.perWorker[x.slotKey]++
	}
	if x != nil && x.slot != slotNone {
		if e.state != core.Leased {
			c.fail("job %d is %v and in a throttle's slot", e.seq, e.state)
		}
	}
	if e.state != core.Leased {
		return
	}
	c.leasedBy[e.holderFrom]++
	switch e.holderKind {
	case core.HeldByConn:
		if cl := c.m.clients[e.holder]; cl == nil || int(e.heldAt) >= len(cl.held) || cl.held[e.heldAt] != h {
			c.fail("job %d is leased to a connection that does not hold it", e.seq)
		}
	case core.HeldByWorker:
		c.workers[e.holder]++
		if list := c.m.leases[e.holder]; int(e.heldAt) >= len(list) || list[e.heldAt] != h {
			c.fail("job %d is leased to a worker that does not have it in its list", e.seq)
		}
	case core.HeldByNobody:
	}
}

// watched walks the watchers of a job.
func (c *checker) watched(h uint32, e *entry) {
	prev, seen, owning := uint32(0), uint32(0), uint32(0)
	for n := e.watchers; n != 0; n = c.m.watchers.at(n).nextJob {
		w := c.m.watchers.at(n)
		c.watchers++
		seen++
		if w.owns() {
			owning++
		}
		c.timer(w.deadline != 0)
		if w.job != h || w.prevJob != prev {
			c.fail("job %d: watcher %d is out of its list", e.seq, n)
			return
		}
		prev = n
	}
	if count, owners := c.m.watcherCount(e); count != seen || owners != owning {
		c.fail("job %d counts %d watchers, %d of them owners; has %d, %d", e.seq, count, owners, seen, owning)
	}
	if c.m.abandoned(e) && e.state != core.Leased && e.state != core.Done {
		c.fail("job %d waits for a worker though nobody waits for it", e.seq)
	}
	if e.watchers != 0 && !e.state.Unfinished() && e.state != core.Dead {
		c.fail("job %d is %v and somebody still waits for it", e.seq, e.state)
	}
}

// links checks both ends of a job's links.
func (c *checker) links(e *entry, x *optional) {
	m := c.m
	for _, seq := range x.waiting {
		p := m.bySeq.get(seq)
		if p == 0 {
			c.fail("job %d waits for job %d, which is gone", e.seq, seq)
			continue
		}
		y := m.optionalState(p)
		if y == nil || !slices.Contains(y.successors, e.seq) && !slices.Contains(y.children, e.seq) {
			c.fail("job %d waits for job %d, which does not know", e.seq, seq)
		}
		if y != nil && y.isClosed {
			c.fail("job %d waits for job %d, which is closed", e.seq, seq)
		}
	}
	if !slices.IsSorted(x.waiting) {
		c.fail("job %d waits for %v, out of order", e.seq, x.waiting)
	}
	if len(x.waiting) > 0 && e.state != core.Blocked {
		c.fail("job %d is %v and waits for %v", e.seq, e.state, x.waiting)
	}
	if x.parent != 0 && !x.isClosed && m.bySeq.get(x.parent) != 0 {
		c.kids[x.parent]++
	}
	if e.state == core.Done && !e.has(keepsOutcome) && x.openChildren == 0 {
		c.fail("job %d is done, stays for its children and has none", e.seq)
	}
	if e.state == core.Done && x.openChildren == 0 && !x.isClosed {
		c.fail("job %d is done, has no open children and is not closed", e.seq)
	}
}

// member counts a job in its batch.
func (c *checker) member(e *entry, x *optional) {
	if x.batch == 0 || c.m.batches[x.batch] == nil {
		return
	}
	if e.state == core.Done {
		c.fail("job %d is done and still a member of batch %d", e.seq, x.batch)
	}
	g := c.batches[x.batch]
	if g == nil {
		g = &batch{}
		c.batches[x.batch] = g
	}
	g.members++
	if x.tried {
		g.failing++
	} else {
		g.untried++
	}
}
