package machine

import (
	"cmp"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/table"
)

// effort limits the cost of one Find.
type effort struct {
	look   int // jobs to examine for a page or a count
	gather int // jobs to sort for an order without an index
}

var usualEffort = effort{look: 20_000, gather: 4000}

// noneFound is the answer of a search that has found nothing; read-only.
var noneFound core.Answer

// findJobs lists jobs.
func (m *Machine) findJobs(c *client, op *core.Find) {
	if op.Filter.CancelRequested && m.table.StopCount() == 0 && op.Cursor == "" && !op.WithCount { // workers ask for this all the time
		m.reply(c, core.Reply{Kind: core.Listed, Tag: op.Tag, Commit: m.table.JobGone(), Answer: &noneFound})
		return
	}
	s, err := m.newSearch(op)
	if err != nil {
		m.failed(c, op.Tag, err)
		return
	}
	if op.Filter.NeedsRecords() { // the engine continues outside the lock
		m.replyWith(c, core.Reply{Kind: core.Listed, Tag: op.Tag, Commit: m.table.JobGone(), Answer: &core.Answer{}}, Work{Needs: FoundByRecords, Find: op})
		return
	}
	page := m.findPage(s, pageLimit(op.Limit), op.Brief)
	r := core.Reply{
		Kind: core.Listed, Tag: op.Tag, Jobs: page.Jobs, Commit: page.Commit,
		Answer: &core.Answer{NextCursor: page.Next, Stopped: page.Stopped},
	}
	if op.WithCount {
		r.Count, r.CountExact = s.count()
	}
	if op.WithFailures > 0 && s.plain && !s.never {
		r.Failures = s.failures(op.WithFailures)
	}
	if op.Brief {
		m.reply(c, r)
		return
	}
	m.replyWith(c, r, Work{Needs: FoundJobs})
}

// Page is a part of a list of jobs.
type Page struct {
	Jobs    []core.JobInfo
	Cursors []string // after each of Jobs
	Next    string   // start of the next page; empty: the last page
	Stopped bool     // it is short because the limit of examined jobs was reached
	Commit  core.Commit
}

// FindPage finds up to limit jobs as far as the index can tell: it ignores the conditions of the filter for which NeedsRecords is
// true.
func (m *Machine) FindPage(now core.Instant, op *core.Find, cursor string, limit int) (Page, error) {
	m.setNow(now)
	again := *op
	again.Cursor = cursor
	s, err := m.newSearch(&again)
	if err != nil {
		return Page{}, err
	}
	p := m.findPage(s, limit, false)
	for i := range p.Jobs {
		p.Cursors = append(p.Cursors, s.cursorAt(m.table.Handle(p.Jobs[i].Seq)))
	}
	return p, nil
}

// findPage fills a page. It looks one job beyond the page, so that a cursor means that there are more.
func (m *Machine) findPage(s *search, limit int, brief bool) (p Page) {
	p.Commit = m.table.JobGone()
	p.Jobs = make([]core.JobInfo, 0, min(limit, 64))
	walk, looked, last := s.walk(), 0, uint32(0)
	for h := walk.Next(); h != 0 && !s.isPast(h); h = walk.Next() {
		if looked++; looked > m.effort.look {
			p.Next, p.Stopped = s.cursorAt(last), len(p.Jobs) < limit
			return p
		}
		if s.matches(h) {
			if len(p.Jobs) == limit {
				p.Next = s.cursorAt(last)
				return p
			}
			p.Jobs = append(p.Jobs, m.jobInfo(h, brief))
			p.Commit = max(p.Commit, m.table.JobCommit(m.table.At(h)))
		}
		last = h
	}
	return p
}

// count is the number of matching jobs, or a lower bound if it is not exact.
func (s *search) count() (n int, exact bool) {
	if n, known := s.counted(); known {
		return n, true
	}
	first := *s
	first.start = s.rangeStart()
	walk := first.walk()
	for looked := 0; ; looked++ {
		h := walk.Next()
		if h == 0 || first.isPast(h) {
			return n, true
		}
		if looked == s.m.effort.look {
			return n, false
		}
		if first.matches(h) {
			n++
		}
	}
}

// counted is the number of matches if counters have it: by state, in all queues or in some.
func (s *search) counted() (n int, known bool) {
	if len(s.tags) == 1 && s.f.OnlyTags() {
		return s.m.table.Tags.Jobs[s.tags[0]].Len(), true
	}
	if s.group != 0 && s.f.OnlyGroup() && s.queues == nil && s.states == setOf([]core.State{core.Retrying, core.Dead}) {
		return s.m.table.Groups.Jobs[s.group].Len(), true
	}
	if s.never {
		return 0, true
	}
	if n, known := s.countedSpan(); known {
		return n, true
	}
	if !s.plain {
		return 0, false
	}
	for _, state := range core.States {
		switch {
		case !s.states.has(state):
		case s.queues == nil:
			n += s.m.table.InState[state]
		default:
			for _, q := range s.queues {
				n += s.m.queues[q].Count[state]
			}
		}
	}
	return n, true
}

// countedSpan is the number of matches of a filter that has a range of the instant by which its only state is listed, and states
// and queues beside it: the lists are in that order.
func (s *search) countedSpan() (n int, known bool) {
	f := *s.f
	var r core.Range
	var state core.State
	switch {
	case f.Died != (core.Range{}):
		r, state = f.Died, core.Dead
	case f.Finished != (core.Range{}):
		r, state = f.Finished, core.Done
	case f.Due != (core.Range{}) && s.states == setOf([]core.State{core.Scheduled}):
		r, state = f.Due, core.Scheduled
	case f.Due != (core.Range{}) && s.states == setOf([]core.State{core.Retrying}):
		r, state = f.Due, core.Retrying
	default:
		return 0, false
	}
	f.Died, f.Finished, f.Due = core.Range{}, core.Range{}, core.Range{}
	if !f.OnlyStatesAndQueues() || s.states != setOf([]core.State{state}) || s.queues != nil && state == core.Scheduled {
		return 0, false
	}
	before := func(l *queue.List, at core.Instant) int {
		return l.Search(func(h uint32) bool { return s.m.table.At(h).ListedAt() < at })
	}
	within := func(l *queue.List) int {
		if r.To == 0 {
			return l.Len() - before(l, r.From)
		}
		return max(before(l, r.To)-before(l, r.From), 0)
	}
	if s.queues == nil {
		return within(&s.m.table.ByState[state]), true
	}
	for _, number := range s.queues {
		if lists := s.m.queues[number].ByState; lists != nil {
			n += within(&lists[state])
		}
	}
	return n, true
}

// listNames lists names by which jobs can be found.
func (m *Machine) listNames(c *client, op *core.ListNames) {
	var table *table.NameTable
	switch op.Of {
	case core.FailureGroups:
		table = &m.table.Groups.Names
	case core.TypeNames:
		table = &m.table.Types
	case core.TagNames:
		table = &m.table.Tags.Names
	default:
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	m.reply(c, core.Reply{
		Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{Names: table.List(op, pageLimit(op.Limit))}, Commit: m.table.JobGone(),
	})
}

// stateSet is a set of states.
type stateSet uint16

func setOf(states []core.State) (set stateSet) {
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

func (set stateSet) has(s core.State) bool { return set&(1<<s) != 0 }

// failures are the largest counts by failure group and type of the jobs that match.
func (s *search) failures(limit int) []core.FailureCount {
	type name struct{ group, kind, queue uint32 } // queue: if its name is the type
	sums := map[name]int{}
	for key, n := range s.m.table.Groups.Counts {
		if !s.states.has(key.State) || !s.hasQueue(key.Queue) {
			continue
		}
		of := name{group: key.Group, kind: key.Kind}
		if key.Kind == 0 {
			of.queue = key.Queue
		}
		sums[of] += n
	}
	all := make([]core.FailureCount, 0, len(sums))
	for of, n := range sums {
		typ := s.m.table.Types.NameOf(of.kind)
		if of.kind == 0 {
			typ = s.m.queues[of.queue].Name
		}
		all = append(all, core.FailureCount{Group: s.m.table.Groups.Names.NameOf(of.group), Type: typ, Jobs: n})
	}
	slices.SortFunc(all, func(a, b core.FailureCount) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Group, b.Group), strings.Compare(a.Type, b.Type))
	})
	return all[:min(len(all), limit)]
}
