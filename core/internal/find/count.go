package find

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/table"
)

// Count is the number of matching jobs, or a lower bound if it is not exact.
func (s *Search) Count() (n int, exact bool) {
	if n, known := s.counted(); known {
		return n, true
	}
	first := *s
	first.start, first.spent, first.undecided = s.rangeStart(), 0, false
	if s.climb == nil {
		defer func() { s.climbs.drop(first.climb) }() // the pages did not need it
	}
	walk := first.walk()
	for ; !first.undecided; first.spent++ {
		h := walk.Next()
		if h == 0 || first.isPast(h) {
			return n, true
		}
		if first.spent >= s.effort.Look {
			return n, false
		}
		if first.Matches(h) {
			n++
		}
	}
	return n, false
}

// counted returns the number of matches if counters by state, of all or some queues, know it.
func (s *Search) counted() (n int, known bool) {
	if len(s.tags) == 1 && s.f.OnlyTags() {
		return s.table.Tags.Jobs[s.tags[0]].Len(), true
	}
	if s.group != 0 && s.f.OnlyGroup() && s.queues == nil && s.states == setOf([]core.State{core.Retrying, core.Dead}) {
		return s.table.Groups.Jobs[s.group].Len(), true
	}
	if s.never {
		return 0, true
	}
	if n, known := s.countedSpan(); known {
		return n, true
	}
	if n, known := s.countedFailures(); known {
		return n, true
	}
	if !s.plain {
		return 0, false
	}
	for _, state := range core.States {
		switch {
		case !s.states.has(state):
		case s.queues == nil:
			n += s.table.InState[state]
		default:
			for _, q := range s.queues {
				n += s.table.QueueAt(q).Count[state]
			}
		}
	}
	return n, true
}

// countedSpan returns the number of matches of a filter with one state, perhaps queues, and a range of the time by
// which the list of that state is sorted.
func (s *Search) countedSpan() (n int, known bool) {
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
	if !f.OnlyStatesAndQueues() || s.states != setOf([]core.State{state}) ||
		s.queues != nil && state == core.Scheduled {
		return 0, false
	}
	before := func(l *queue.List, at core.Instant) int {
		return l.Search(func(h uint32) bool { return s.table.At(h).ListedAt() < at })
	}
	within := func(l *queue.List) int {
		if r.To == 0 {
			return l.Len() - before(l, r.From)
		}
		return max(before(l, r.To)-before(l, r.From), 0)
	}
	if s.queues == nil {
		return within(&s.table.ByState[state]), true
	}
	for _, number := range s.queues {
		if lists := s.table.QueueAt(number).ByState; lists != nil {
			n += within(&lists[state])
		}
	}
	return n, true
}

// CountsFailures reports whether the filter names only states, queues, a failure group, types, a version and whole
// hours of death, so that retrying and dead jobs are counted by failure group and type.
func (s *Search) CountsFailures() bool {
	f := *s.f
	const hour = core.Instant(time.Hour / time.Microsecond)
	if f.Died.From%hour != 0 || f.Died.To%hour != 0 {
		return false
	}
	f.Types, f.Version, f.NoVersion, f.Died = nil, "", false, core.Range{}
	return f.OnlyGroup() && len(s.table.Groups.Counts) <= max(s.effort.Look, 1<<16)
}

// countedFailures returns the number of matches of a filter for retrying or dead jobs that names a failure group,
// types or both, and perhaps queues.
func (s *Search) countedFailures() (n int, known bool) {
	if s.plain || !s.CountsFailures() || s.states&^setOf([]core.State{core.Retrying, core.Dead}) != 0 {
		return 0, false
	}
	for key, jobs := range s.table.Groups.Counts {
		n += s.failures(key, jobs)
	}
	return n, true
}

// failures returns how many of the jobs that are counted by a key match.
func (s *Search) failures(key table.FailureKey, jobs int) int {
	switch {
	case !s.hasFailure(key):
		return 0
	case s.f.Died == (core.Range{}):
		return jobs
	case key.State != core.Dead:
		return 0
	}
	return s.table.Groups.Deaths[key].Within(s.f.Died)
}

// hasFailure reports whether jobs that are counted by a key match, whenever they died.
func (s *Search) hasFailure(key table.FailureKey) bool {
	ofGroup := (s.group == 0 || key.Group == s.group) && (!s.f.NoFailureGroup || key.Group == 0)
	ofType := s.kinds == nil || key.Kind != 0 && s.kinds[key.Kind] || key.Kind == 0 && s.named[key.Queue]
	ofVersion := (s.version == 0 || key.Version == s.version) && (!s.f.NoVersion || key.Version == 0)
	return !s.never && ofGroup && ofType && ofVersion && s.states.has(key.State) && s.hasQueue(key.Queue)
}

// failureName is what jobs of a core.FailureCount have in common.
type failureName struct{ group, kind, queue uint32 } // queue: if its name is the type

func failureNameOf(key table.FailureKey) failureName {
	of := failureName{group: key.Group, kind: key.Kind}
	if key.Kind == 0 {
		of.queue = key.Queue
	}
	return of
}

// failureSum is a core.FailureCount that is being counted.
type failureSum struct {
	failureName
	core.FailureCount

	versions map[uint32]*core.VersionCount
}

// Failures returns the largest counts of matching jobs by failure group and type.
func (s *Search) Failures(limit int) []core.FailureCount {
	sums := map[failureName]*failureSum{}
	for key, jobs := range s.table.Groups.Counts {
		if n := s.failures(key, jobs); n > 0 {
			s.sumOf(sums, key).add(key, n)
		}
	}
	all := slices.SortedFunc(maps.Values(sums), func(a, b *failureSum) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Group, b.Group), strings.Compare(a.Type, b.Type))
	})
	all = all[:min(len(all), limit)]
	shown := make(map[failureName]*failureSum, len(all))
	for _, sum := range all {
		shown[sum.failureName] = sum
	}
	span := core.DiedSpan(s.f.Died, s.table.Now)
	for key, deaths := range s.table.Groups.Deaths {
		if sum := shown[failureNameOf(key)]; sum != nil && s.hasFailure(key) {
			open := s.f.Died.To == 0
			addDeaths(&sum.Died, &sum.FirstHour, &sum.LastHour, deaths, span, open)
			if v := sum.versions[key.Version]; v != nil {
				addDeaths(&v.Died, &v.FirstHour, &v.LastHour, deaths, span, open)
			}
		}
	}
	counts := make([]core.FailureCount, len(all))
	for i, sum := range all {
		counts[i] = sum.FailureCount
		counts[i].Versions = s.versionsOf(sum)
	}
	return counts
}

// sumOf returns the sum for a key.
func (s *Search) sumOf(sums map[failureName]*failureSum, key table.FailureKey) *failureSum {
	of := failureNameOf(key)
	if sums[of] == nil {
		typ := s.table.Types.NameOf(of.kind)
		if of.kind == 0 {
			typ = s.table.QueueAt(of.queue).Name
		}
		count := core.FailureCount{Group: s.table.Groups.Names.NameOf(of.group), Type: typ}
		sums[of] = &failureSum{of, count, map[uint32]*core.VersionCount{}}
	}
	return sums[of]
}

// add adds jobs that are counted by a key.
func (f *failureSum) add(key table.FailureKey, jobs int) {
	f.Jobs += jobs
	if f.versions[key.Version] == nil {
		f.versions[key.Version] = &core.VersionCount{}
	}
	f.versions[key.Version].Jobs += jobs
}

// versionsOf returns the parts of a sum by version, if a version is known.
func (s *Search) versionsOf(f *failureSum) (all []core.VersionCount) {
	if len(f.versions) == 1 && f.versions[0] != nil {
		return nil
	}
	for number, v := range f.versions {
		v.Version = s.table.Versions.Names.NameOf(number)
		all = append(all, *v)
	}
	slices.SortFunc(all, func(a, b core.VersionCount) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Version, b.Version))
	})
	return all[:min(len(all), core.MaxVersions)]
}

// addDeaths adds deaths to the counts of the hours of a span.
func addDeaths(died *[]int, first, last *core.Instant, deaths *table.Deaths, span core.Range, open bool) {
	if *died == nil {
		*died = make([]int, span.To.Sub(span.From)/time.Hour)
		*first = deaths.First()
	}
	deaths.AddTo(*died, span.From, open)
	*first, *last = min(*first, deaths.First()), max(*last, deaths.Last())
}
