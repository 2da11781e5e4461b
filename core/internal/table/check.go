package table

import (
	"fmt"
	"maps"
	"slices"

	"broker/core"
	"broker/core/internal/queue"
)

// Check verifies the table: Job for every job, then End. Its time is linear in the size of the table.
type Check struct {
	t    *Table
	fail func(format string, args ...any)

	jobs, ids, uniques, optionals, transients, firstFails, traces, tallies, stops, cached, collected, tagged, timers int

	queues   map[uint32]*[len(core.States) + 1]int // jobs by state
	types    map[uint32]int                        // jobs, by number of the type
	workers  map[uint32]int                        // leases, by number of the worker's name
	versions map[uint32]int                        // jobs, by number of the version
	tags     map[uint32]int                        // jobs, by number of the tag
	groups   map[uint32]int                        // retrying and dead jobs, by number of the failure group
	deaths   map[FailureKey]*Deaths
	failures map[FailureKey]int // all retrying and dead jobs
}

// NewCheck starts a check, which calls fail for each violation.
func (t *Table) NewCheck(fail func(format string, args ...any)) *Check {
	return &Check{
		t: t, fail: fail, queues: map[uint32]*[len(core.States) + 1]int{}, types: map[uint32]int{},
		workers: map[uint32]int{}, versions: map[uint32]int{},
		tags: map[uint32]int{}, groups: map[uint32]int{}, failures: map[FailureKey]int{},
		deaths: map[FailureKey]*Deaths{},
	}
}

// Job checks one job and counts it.
func (c *Check) Job(h uint32, e *Entry) {
	t := c.t
	c.jobs++
	c.inState(e.Queue)[e.State]++
	if t.Handle(e.Seq) != h {
		c.fail("job %d is not found by its number", e.Seq)
	}
	if e.ID != (Digest{}) {
		c.ids++
		if t.byID[e.ID] != h {
			c.fail("job %d is not found by its id", e.Seq)
		}
	}
	if e.Unique != (Digest{}) {
		c.uniques++
	}
	if e.Kind != 0 {
		c.types[e.Kind]++
	}
	if j := t.Payload(h); j != nil {
		c.cached += PayloadBytes(j)
	} else if !e.Has(PayloadStored) {
		c.fail("job %d has no payload in memory and none on disk", e.Seq)
	}
	if e.Has(Dirty) && !slices.Contains(t.changed, h) {
		c.fail("job %d has changed and nobody will store it", e.Seq)
	}
	if e.State == core.Leased && e.HolderKind == core.HeldByWorker {
		c.workers[e.Holder]++
		if list := t.leases[e.Holder]; int(e.HeldAt) >= len(list) || list[e.HeldAt] != h {
			c.fail("job %d is leased to a worker that does not have it in its list", e.Seq)
		}
	}
	c.state(h, e)
	c.sideMaps(h, e)
	c.indexed(h, e)
	c.tagsOf(h)
}

// timer counts a deadline in use.
func (c *Check) timer(has bool) {
	if has {
		c.timers++
	}
}

// state checks which data a job in its state must and must not have, and counts its deadlines.
func (c *Check) state(h uint32, e *Entry) {
	x := c.t.Optional(h)
	c.timer(e.StateTimer != 0)
	c.timer(e.ExpiryTimer != 0)
	c.timer(x != nil && x.StartTimer != 0)
	switch e.State {
	case core.Scheduled, core.Retrying:
		if e.StateTimer == 0 {
			c.fail("job %d is %v without a deadline", e.Seq, e.State)
		}
	case core.Leased:
		if e.StateTimer == 0 && e.HolderKind != core.HeldByConn {
			c.fail("job %d is leased without a time limit or a connection", e.Seq)
		}
	case core.Blocked:
		if !e.Has(Broken) && (x == nil || len(x.Waiting) == 0 && x.CallbackFor == 0) {
			c.fail("job %d is blocked by nothing", e.Seq)
		}
	case core.Ready:
		if x != nil && x.StartBefore != 0 && x.StartTimer == 0 {
			c.fail("job %d is ready and its time to start never ends", e.Seq)
		}
	case core.Done, core.Dead:
	case core.Gone:
		c.fail("job %d is gone and still there", e.Seq)
	}
	if e.StateTimer != 0 && (e.State == core.Ready || e.State == core.Blocked || !e.State.Unfinished()) {
		c.fail("job %d is %v and has a deadline", e.Seq, e.State)
	}
	if e.Unique != (Digest{}) && !e.State.Unfinished() {
		c.fail("job %d is %v and keeps its unique key", e.Seq, e.State)
	}
	if e.Has(KeptByQueue) && (e.State != core.Done || !e.Has(KeepsOutcome|Listed) || e.ExpiresAt == 0) {
		c.fail("job %d is %v and kept as a finished one", e.Seq, e.State)
	}
}

// inState counts the jobs of a queue.
func (c *Check) inState(queue uint32) *[len(core.States) + 1]int {
	if c.queues[queue] == nil {
		c.queues[queue] = new([len(core.States) + 1]int)
	}
	return c.queues[queue]
}

// sideMaps checks the data of a job outside its entry.
func (c *Check) sideMaps(h uint32, e *Entry) {
	t := c.t
	if e.Has(HasOptional) != (t.optionals[h] != nil) || e.Has(HasTransient) != (t.transients[h] != nil) {
		c.fail("job %d: flags and side maps disagree", e.Seq)
	}
	if e.Has(HasOptional) {
		c.optionals++
	}
	if e.Has(HasTransient) {
		c.transients++
		c.collected += len(t.transients[h].Data)
	}
	if at, ok := t.firstFails[h]; ok {
		c.firstFails++
		if at == 0 || e.Fails == 0 {
			c.fail("job %d with %d failures failed first at %d", e.Seq, e.Fails, at)
		}
	}
	if _, ok := t.traces[h]; ok != e.Has(Traced) {
		c.fail("job %d: flag and map of traces disagree", e.Seq)
	}
	if e.Has(Traced) {
		c.traces++
	}
	if _, ok := t.tallies[h]; ok && !e.Has(TallyMoves|TallyFirstLease) {
		c.fail("job %d has a tally and keeps none", e.Seq)
	} else if ok {
		c.tallies++
	}
	if n := t.VersionNumber(h); n != 0 {
		c.versions[n]++
	}
	if e.Has(Stopping) {
		c.stops++
		if e.State != core.Leased || t.stops[e.Seq] == 0 {
			c.fail("job %d is %v and to stop since %d", e.Seq, e.State, t.stops[e.Seq])
		}
	}
}

// indexed checks that a job is in the lists of its state and its failure group.
func (c *Check) indexed(h uint32, e *Entry) {
	if wants := e.State != core.Ready; e.Has(Listed) != wants {
		c.fail("job %d is %v, in the list of its state: %v", e.Seq, e.State, e.Has(Listed))
	}
	if e.State != core.Retrying && e.State != core.Dead {
		return
	}
	key := c.t.failureKey(h, e)
	c.failures[key]++
	if e.State == core.Dead {
		if c.deaths[key] == nil {
			c.deaths[key] = &Deaths{}
		}
		c.deaths[key].add(e.ListedAt(), 1)
	}
	if e.Holder != 0 {
		c.groups[e.Holder]++
	}
}

// tagsOf counts the tags of a job, and compares them with its payload.
func (c *Check) tagsOf(h uint32) {
	for n := c.t.Tags.first[h]; n != 0; n = c.t.Tags.links[n].next {
		c.tags[c.t.Tags.links[n].tag]++
	}
	if c.t.Tags.first[h] != 0 {
		c.tagged++
	}
	if j := c.t.Payload(h); j != nil {
		want := []string{}
		for _, tag := range j.Tags {
			if !slices.Contains(want, tag) {
				want = append(want, tag)
			}
		}
		if have := c.t.TagsOf(h); !slices.Equal(have, want) {
			c.fail("job %d has the tags %q, found by %q", j.Seq, j.Tags, have)
		}
	}
}

// End compares the counts, checks all lists, and returns the number of deadlines in use.
func (c *Check) End() (timers int) {
	c.sizes()
	c.stateLists()
	c.nameLists()
	c.numbers()
	c.queueNames()
	return c.timers
}

// sizes compares the sizes of the indexes with the counts.
func (c *Check) sizes() {
	t := c.t
	for _, x := range []struct {
		what      string
		have, saw int
	}{
		{"jobs in the slab", t.Live, c.jobs},
		{"ids in the index", len(t.byID), c.ids},
		{"jobs with something unusual", len(t.optionals), c.optionals},
		{"bytes of results", t.Collected, c.collected},
		{"jobs with notes", len(t.transients), c.transients},
		{"first failures", len(t.firstFails), c.firstFails},
		{"traces", len(t.traces), c.traces},
		{"tallies", len(t.tallies), c.tallies},
		{"stops", len(t.stops), c.stops},
		{"bytes in the cache", t.cached, c.cached},
	} {
		if x.have != x.saw {
			c.fail("%s: %d, counted %d", x.what, x.have, x.saw)
		}
	}
	chained := 0
	for _, h := range t.byUnique {
		for ; h != 0; h = t.At(h).UniqueNext {
			chained++
		}
	}
	if chained != c.uniques {
		c.fail("%d jobs have a unique key, %d are found by it", c.uniques, chained)
	}
}

// stateLists checks the counts and the lists of states.
func (c *Check) stateLists() {
	t := c.t
	var total [len(core.States) + 1]int
	var classes [3]int
	for n, states := range c.queues {
		if t.queues[n] == nil {
			c.fail("queue %d is forgotten and has jobs", n)
		}
		for s, jobs := range states {
			total[s] += jobs
		}
	}
	if total != t.InState {
		c.fail("server counts jobs %v, there are %v", t.InState, total)
	}
	for _, s := range core.States {
		if s != core.Ready {
			c.sorted("all queues", &t.ByState[s], t.InState[s], t.sooner, func(e *Entry) bool { return e.State == s })
		}
	}
	for n, q := range t.queues {
		if q != nil {
			c.queue(uint32(n), q, &classes)
		}
	}
	if classes != t.Class {
		c.fail("ready jobs by class %v, counted %v", t.Class, classes)
	}
}

// queue checks the counters and the lists of a queue.
func (c *Check) queue(n uint32, q *Queue, classes *[3]int) {
	t := c.t
	if t.names[q.Name] != n {
		c.fail("queue %s is not found by its name", q.Name)
	}
	if have := *c.inState(n); have != q.Count {
		c.fail("queue %s counts %v, has %v", q.Name, q.Count, have)
	}
	for _, s := range []core.State{core.Retrying, core.Done, core.Dead} {
		if q.ByState != nil {
			c.sorted(q.Name, &q.ByState[s], q.Count[s], t.sooner,
				func(e *Entry) bool { return e.State == s && e.Queue == n })
		} else if q.Count[s] > 0 {
			c.fail("queue %s has %d %v jobs and no list of them", q.Name, q.Count[s], s)
		}
	}
	c.sorted(q.Name, &q.Ready, q.Count[core.Ready], t.Before, func(e *Entry) bool { return e.State == core.Ready })
	c.sorted(q.Name, &q.Scheduled, q.Count[core.Scheduled], t.Before,
		func(e *Entry) bool { return e.State == core.Scheduled })
	var class [3]int
	for _, h := range q.Ready.Slice(0, q.Ready.Len(), nil) {
		class[classOf(t.At(h).Priority())]++
	}
	for i, jobs := range class {
		classes[i] += jobs
	}
	if class != q.Class {
		c.fail("queue %s: classes %v, counted %v", q.Name, q.Class, class)
	}
}

// nameLists checks the names, and the lists of failure groups and tags.
func (c *Check) nameLists() {
	t := c.t
	c.names("worker", &t.Workers, c.workers)
	c.names("type", &t.Types, c.types)
	c.names("version", &t.Versions.Names, c.versions)
	c.names("failure group", &t.Groups.Names, c.groups)
	c.names("tag", &t.Tags.Names, c.tags)
	same := func(a, b *Deaths) bool { return slices.Equal(a.hours, b.hours) }
	if !maps.EqualFunc(c.deaths, t.Groups.Deaths, same) {
		c.fail("deaths are counted as %v, want %v", t.Groups.Deaths, c.deaths)
	}
	if !maps.Equal(c.failures, t.Groups.Counts) {
		c.fail("failures are counted as %v, want %v", t.Groups.Counts, c.failures)
	}
	for n, jobs := range c.groups {
		c.sorted(t.Groups.Names.NameOf(n), &t.Groups.Jobs[n], jobs, t.Older, func(e *Entry) bool {
			return (e.State == core.Retrying || e.State == core.Dead) && e.Holder == n
		})
	}
	for n, jobs := range c.tags {
		c.sorted(t.Tags.Names.NameOf(n), &t.Tags.Jobs[n], jobs, t.Older, func(e *Entry) bool {
			return t.Tags.Has(t.Handle(e.Seq), n)
		})
	}
	if len(t.Tags.first) != c.tagged {
		c.fail("%d jobs in the index of tags, %d have tags", len(t.Tags.first), c.tagged)
	}
}

// names compares a table of names with their users.
func (c *Check) names(what string, t *NameTable, used map[uint32]int) {
	for number, refs := range used {
		if t.refs[number] != refs {
			c.fail("%s %q is noted for %d jobs, has %d", what, t.names[number], t.refs[number], refs)
		}
	}
	if len(used) != len(t.number) {
		c.fail("%d names of %ss, %d in use", len(t.number), what, len(used))
	}
}

// numbers checks the index of numbers.
func (c *Check) numbers() {
	x := &c.t.bySeq
	if !slices.IsSorted(x.order) {
		c.fail("pages of numbers are out of order")
	}
	for n := range x.pages {
		if _, there := slices.BinarySearch(x.order, n); !there {
			c.fail("page %d of numbers is not in the order of pages", n)
		}
	}
}

// queueNames checks the list of queues by name, and the queues that are not in it yet.
func (c *Check) queueNames() {
	t, x, hidden := c.t, &c.t.inOrder, 0
	for _, q := range t.queues {
		if q != nil && q.Hidden {
			hidden++
		}
	}
	if n := x.sorted.Len() + len(x.unsorted); n != t.QueueCount() || x.hidden != hidden {
		c.fail("queues by name: %d in the list and %d hidden, want %d and %d", n, x.hidden, t.QueueCount(), hidden)
	}
	folded := 0
	for name, numbers := range x.folded {
		folded += len(numbers)
		for i, n := range numbers {
			if foldName(x.of[n]) != name || i > 0 && !t.nameBefore(numbers[i-1], n) {
				c.fail("queues ignoring case: queue %d is out of order, or forgotten", n)
			}
		}
	}
	for _, name := range x.of {
		if foldName(name) != name {
			folded--
		}
	}
	if folded != 0 {
		c.fail("queues ignoring case: %d too many", folded)
	}
	all := x.sorted.Slice(0, x.sorted.Len(), nil)
	for i, n := range append(all, x.unsorted...) {
		if t.queues[n] == nil || i > 0 && i < len(all) && !t.byName(all[i-1], n) {
			c.fail("queues by name: queue %d is out of order, or forgotten", n)
			return
		}
	}
}

// sorted checks the length, the order and the members of a list.
func (c *Check) sorted(name string, l *queue.List, want int, before queue.Before, member func(*Entry) bool) {
	if err := c.t.CheckList(name, l, want, before, member); err != nil {
		c.fail("%w", err)
	}
}

// CheckList checks the length, the order and the members of a list.
func (t *Table) CheckList(name string, l *queue.List, want int, before queue.Before, member func(*Entry) bool) error {
	if l.Len() != want {
		return fmt.Errorf("%s: %d jobs in a list, want %d", name, l.Len(), want)
	}
	last, walk := uint32(0), l.From(nil)
	for h := walk.Next(); h != 0; h = walk.Next() {
		if e := t.At(h); !member(e) {
			return fmt.Errorf("%s: job %d is %v and in a list where it does not belong", name, e.Seq, e.State)
		}
		if last != 0 && !before(last, h) {
			return fmt.Errorf("%s: job %d is out of order", name, t.At(h).Seq)
		}
		last = h
	}
	return nil
}
