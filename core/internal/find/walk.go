package find

import (
	"slices"
	"sort"

	"broker/core"
	"broker/core/internal/queue"
)

// walker returns the jobs of a search in its order, after its cursor; some may not match.
type walker interface{ Next() uint32 }

// walk returns the shortest walk over an index.
func (s *Search) walk() walker {
	if s.never {
		return &gathered{}
	}
	if s.group == 0 && s.tags == nil || s.order != core.OrderCreated { // groups and tags have lists in this order
		if handles, few := s.gather(); few {
			return s.sorted(handles)
		}
	}
	switch s.order {
	case core.OrderCreated:
		return s.walkCreated()
	case core.OrderQueue:
		return &queueWalk{s: s, queues: s.queuesInOrder()}
	case core.OrderDue, core.OrderLeased, core.OrderDied, core.OrderFinished:
	}
	return s.merge(s.stateLists())
}

// gathered is a list of handles.
type gathered struct{ handles []uint32 }

func (g *gathered) Next() uint32 {
	if len(g.handles) == 0 {
		return 0
	}
	h := g.handles[0]
	g.handles = g.handles[1:]
	return h
}

// sorted sorts handles by the order of the search and removes those that do not match or are not after its cursor.
func (s *Search) sorted(handles []uint32) walker {
	type placed struct {
		place
		h uint32
	}
	all := make([]placed, 0, len(handles))
	for _, h := range handles {
		if s.Matches(h) {
			if p := s.placeOf(h); s.isBehind(p) {
				all = append(all, placed{p, h})
			}
		}
	}
	slices.SortFunc(all, func(a, b placed) int {
		if s.desc {
			return b.compare(a.place)
		}
		return a.compare(b.place)
	})
	g := &gathered{handles: make([]uint32, len(all))}
	for i := range all {
		g.handles[i] = all[i].h
	}
	return g
}

// isBehind reports whether a position is after the cursor.
func (s *Search) isBehind(p place) bool {
	if s.start == nil {
		return true
	}
	if s.desc {
		return p.compare(*s.start) < 0
	}
	return p.compare(*s.start) > 0
}

// gather collects the only candidates that an index knows, if there are few enough to sort.
func (s *Search) gather() (handles []uint32, few bool) {
	switch {
	case len(s.unique) > 0:
		for _, key := range s.unique {
			handles = append(handles, s.table.Holders(key)...)
		}
		return handles, true
	case len(s.f.Seqs) > 0 && len(s.f.Seqs) <= s.effort.Gather:
		for _, seq := range s.f.Seqs {
			if h := s.table.Handle(seq); h != 0 {
				handles = append(handles, h)
			}
		}
		return handles, true
	case s.f.HoldsKey && s.table.LockCount() <= s.effort.Gather:
		return s.table.KeyHolders(), true
	case s.f.CancelRequested && s.table.StopCount() <= s.effort.Gather:
		return s.table.StoppingJobs(), true
	case s.worker != 0 && len(s.table.LeasesOf(s.worker)) <= s.effort.Gather && !s.host.IsConnName(s.f.Worker):
		return s.table.LeasesOf(s.worker), true // a connection of that name is found only in the list of leased jobs
	case len(s.tags) > 0 && s.table.Tags.Jobs[s.tags[0]].Len() <= s.effort.Gather:
		return members(handles, &s.table.Tags.Jobs[s.tags[0]]), true
	case s.group != 0 && s.table.Groups.Jobs[s.group].Len() <= s.effort.Gather:
		return members(handles, &s.table.Groups.Jobs[s.group]), true
	}
	lists := s.smallLists()
	n := 0
	for _, l := range lists {
		n += l.Len()
	}
	if lists == nil || n > s.effort.Gather {
		return nil, false
	}
	for _, l := range lists {
		handles = members(handles, l)
	}
	return handles, true
}

func members(into []uint32, l *queue.List) []uint32 { return l.Slice(0, l.Len(), into) }

// maxLists is the maximum number of lists to merge.
const maxLists = 64

// smallLists returns lists that together hold all jobs of the states and queues of the search; nil: there are none, or
// too many.
func (s *Search) smallLists() (lists []*queue.List) {
	if len(s.queues) > maxLists {
		return nil
	}
	for _, state := range core.States {
		if !s.states.has(state) {
			continue
		}
		if s.queues == nil {
			if state == core.Ready {
				return nil
			}
			lists = append(lists, &s.table.ByState[state])
			continue
		}
		if state == core.Leased || state == core.Blocked {
			lists = append(lists, &s.table.ByState[state])
			continue
		}
		for _, n := range s.queues {
			if l := s.table.QueueAt(n).ListOf(state); l != nil {
				lists = append(lists, l)
			}
		}
	}
	if lists == nil {
		lists = []*queue.List{} // no queue has such a job
	}
	return lists
}

// stateLists returns lists in the order of the search that together hold all jobs of its states and queues.
func (s *Search) stateLists() (lists []*queue.List) {
	for _, state := range core.States {
		switch {
		case !s.states.has(state):
		case s.queues == nil || len(s.queues) > maxLists || state == core.Scheduled || state == core.Leased:
			lists = append(lists, &s.table.ByState[state])
		default:
			for _, n := range s.queues {
				if l := s.table.QueueAt(n).ListOf(state); l != nil {
					lists = append(lists, l)
				}
			}
		}
	}
	return lists
}

// walkCreated walks jobs in the order of their numbers: the jobs of an index with this order, or all jobs.
func (s *Search) walkCreated() walker {
	switch {
	case len(s.f.Seqs) > 0:
		return s.walkNamed()
	case len(s.tags) > 0:
		return s.merge([]*queue.List{&s.table.Tags.Jobs[s.tags[0]]})
	case s.group != 0:
		return s.merge([]*queue.List{&s.table.Groups.Jobs[s.group]})
	case s.states == setOf([]core.State{core.Blocked}):
		return s.merge([]*queue.List{&s.table.ByState[core.Blocked]})
	}
	from := max(s.f.Batch, s.f.Parent, s.f.Workflow) // members and children are newer
	switch {
	case s.desc && s.start == nil:
		from = s.table.NextSeq
	case s.desc:
		from = s.start.seq - 1
	case s.start != nil:
		from = s.start.seq + 1
	}
	w := s.table.From(from, s.desc)
	return &w
}

// walkNamed walks the jobs whose numbers the filter has.
func (s *Search) walkNamed() walker {
	seqs := s.f.Seqs
	if s.desc {
		seqs = slices.Clone(seqs)
		slices.Reverse(seqs)
	}
	if s.start != nil {
		seqs = seqs[sort.Search(len(seqs), func(i int) bool {
			return s.desc && seqs[i] < s.start.seq || !s.desc && seqs[i] > s.start.seq
		}):]
	}
	return &namedWalk{s, seqs}
}

// namedWalk walks the jobs that exist of some numbers.
type namedWalk struct {
	s    *Search
	seqs []uint64
}

func (w *namedWalk) Next() uint32 {
	for len(w.seqs) > 0 {
		h := w.s.table.Handle(w.seqs[0])
		if w.seqs = w.seqs[1:]; h != 0 {
			return h
		}
	}
	return 0
}

// merge merges lists that are in the order of the search.
func (s *Search) merge(lists []*queue.List) walker {
	passed := func(h uint32) bool { return !s.isBehind(s.placeOf(h)) }
	if s.start == nil {
		passed = nil
	}
	w := &mergedWalk{s: s}
	for _, l := range lists {
		var from queue.Walker
		if s.desc {
			upTo := func(h uint32) bool { return s.isBehind(s.placeOf(h)) }
			if s.start == nil {
				upTo = nil
			}
			from = l.Back(upTo)
		} else {
			from = l.From(passed)
		}
		if h := from.Next(); h != 0 {
			w.walks, w.heads = append(w.walks, from), append(w.heads, h)
		}
	}
	return w
}

// mergedWalk merges sorted lists; heads are their next jobs.
type mergedWalk struct {
	s     *Search
	walks []queue.Walker
	heads []uint32
}

func (w *mergedWalk) Next() uint32 {
	if len(w.heads) == 0 {
		return 0
	}
	first := 0
	for i := 1; i < len(w.heads); i++ {
		order := w.s.placeOf(w.heads[i]).compare(w.s.placeOf(w.heads[first]))
		if order < 0 != w.s.desc {
			first = i
		}
	}
	h := w.heads[first]
	if w.heads[first] = w.walks[first].Next(); w.heads[first] == 0 {
		w.heads, w.walks = slices.Delete(w.heads, first, first+1), slices.Delete(w.walks, first, first+1)
	}
	return h
}

// queuesInOrder returns the queues of the search, starting with that of its cursor.
func (s *Search) queuesInOrder() []uint32 {
	all := s.queues
	if all == nil {
		all = s.queuesFromStart()
	}
	if s.desc {
		all = slices.Clone(all)
		slices.Reverse(all)
	}
	if s.start == nil {
		return all
	}
	at := slices.IndexFunc(all, func(n uint32) bool {
		name := s.table.QueueAt(n).Name
		return name == s.start.queue || name > s.start.queue != s.desc
	})
	if at < 0 {
		return nil
	}
	return all[at:]
}

// queuesFromStart returns all queues except those certainly before the cursor.
func (s *Search) queuesFromStart() []uint32 {
	switch {
	case s.start == nil:
		return s.table.SortedQueues()
	case s.desc:
		return s.table.QueuesUpTo(s.start.queue)
	}
	return s.table.QueuesFrom(s.start.queue)
}

// queueWalk walks the ready jobs of queue after queue.
type queueWalk struct {
	s      *Search
	queues []uint32
	inside walker
}

func (w *queueWalk) Next() uint32 {
	for {
		if w.inside != nil {
			if h := w.inside.Next(); h != 0 {
				return h
			}
			w.inside = nil
		}
		if len(w.queues) == 0 {
			return 0
		}
		q := w.s.table.QueueAt(w.queues[0])
		w.queues = w.queues[1:]
		if q.Ready.Len() > 0 {
			w.inside = w.s.merge([]*queue.List{&q.Ready})
		}
	}
}
