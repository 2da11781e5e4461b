package machine

import (
	"slices"

	"broker/core"
	"broker/core/internal/queue"
)

// walker returns the jobs of a search in its order, after its cursor; some may not match.
type walker interface{ Next() uint32 }

// walk returns the shortest walk over an index.
func (s *search) walk() walker {
	if s.never {
		return &gathered{}
	}
	if s.group == 0 && s.tags == nil || s.order != core.OrderCreated { // these have lists in this order
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
func (s *search) sorted(handles []uint32) walker {
	type placed struct {
		place
		h uint32
	}
	all := make([]placed, 0, len(handles))
	for _, h := range handles {
		if s.matches(h) {
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
func (s *search) isBehind(p place) bool {
	if s.start == nil {
		return true
	}
	if s.desc {
		return p.compare(*s.start) < 0
	}
	return p.compare(*s.start) > 0
}

// gather collects the only candidates that an index knows, if there are few enough to sort.
func (s *search) gather() (handles []uint32, few bool) {
	m := s.m
	switch {
	case s.f.UniqueKey != "":
		return m.table.Holders(s.unique), true
	case s.f.HoldsKey && m.table.LockCount() <= m.effort.gather:
		return m.table.KeyHolders(), true
	case s.f.CancelRequested && m.table.StopCount() <= m.effort.gather:
		return m.table.StoppingJobs(), true
	case s.worker != 0 && len(m.table.LeasesOf(s.worker)) <= m.effort.gather && !m.isNamed(s.f.Worker):
		return m.table.LeasesOf(s.worker), true // a connection of that name is found only in the list of leased jobs
	case len(s.tags) > 0 && m.table.Tags.Jobs[s.tags[0]].Len() <= m.effort.gather:
		return members(handles, &m.table.Tags.Jobs[s.tags[0]]), true
	case s.group != 0 && m.table.Groups.Jobs[s.group].Len() <= m.effort.gather:
		return members(handles, &m.table.Groups.Jobs[s.group]), true
	}
	lists := s.smallLists()
	n := 0
	for _, l := range lists {
		n += l.Len()
	}
	if lists == nil || n > s.m.effort.gather {
		return nil, false
	}
	for _, l := range lists {
		handles = members(handles, l)
	}
	return handles, true
}

// isNamed reports whether a connection has this name.
func (m *Machine) isNamed(name string) bool {
	return slices.ContainsFunc(m.clients, func(c *client) bool { return c != nil && c.name == name })
}

func members(into []uint32, l *queue.List) []uint32 { return l.Slice(0, l.Len(), into) }

// maxLists is the maximum number of lists to merge.
const maxLists = 64

// smallLists returns lists that together hold all jobs of the states and queues of the search; nil: there are none, or too many.
func (s *search) smallLists() (lists []*queue.List) {
	m := s.m
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
			lists = append(lists, &m.table.ByState[state])
			continue
		}
		if state == core.Leased || state == core.Blocked {
			lists = append(lists, &m.table.ByState[state])
			continue
		}
		for _, n := range s.queues {
			if l := m.queues[n].ListOf(state); l != nil {
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
func (s *search) stateLists() (lists []*queue.List) {
	for _, state := range core.States {
		switch {
		case !s.states.has(state):
		case s.queues == nil || len(s.queues) > maxLists || state == core.Scheduled || state == core.Leased:
			lists = append(lists, &s.m.table.ByState[state])
		default:
			for _, n := range s.queues {
				if l := s.m.queues[n].ListOf(state); l != nil {
					lists = append(lists, l)
				}
			}
		}
	}
	return lists
}

// walkCreated walks jobs in the order of their numbers, of an index with this order or all.
func (s *search) walkCreated() walker {
	m := s.m
	switch {
	case len(s.tags) > 0:
		return s.merge([]*queue.List{&m.table.Tags.Jobs[s.tags[0]]})
	case s.group != 0:
		return s.merge([]*queue.List{&m.table.Groups.Jobs[s.group]})
	case s.states == setOf([]core.State{core.Blocked}):
		return s.merge([]*queue.List{&m.table.ByState[core.Blocked]})
	}
	from := max(s.f.Batch, s.f.Parent, s.f.Workflow) // members and children are newer
	switch {
	case s.desc && s.start == nil:
		from = m.table.NextSeq
	case s.desc:
		from = s.start.seq - 1
	case s.start != nil:
		from = s.start.seq + 1
	}
	w := m.table.From(from, s.desc)
	return &w
}

// merge merges lists that are in the order of the search.
func (s *search) merge(lists []*queue.List) walker {
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

// mergedWalk walks lists of which each is in order; heads are the next jobs.
type mergedWalk struct {
	s     *search
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
func (s *search) queuesInOrder() []uint32 {
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
		name := s.m.queues[n].Name
		return name == s.start.queue || name > s.start.queue != s.desc
	})
	if at < 0 {
		return nil
	}
	return all[at:]
}

// queuesFromStart returns all queues except those certainly before the cursor.
func (s *search) queuesFromStart() []uint32 {
	switch {
	case s.start == nil:
		return s.m.table.SortedQueues()
	case s.desc:
		return s.m.table.QueuesUpTo(s.start.queue)
	}
	return s.m.table.QueuesFrom(s.start.queue)
}

// queueWalk walks the ready jobs of queue after queue.
type queueWalk struct {
	s      *search
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
		q := w.s.m.queues[w.queues[0]]
		w.queues = w.queues[1:]
		if q.Ready.Len() > 0 {
			w.inside = w.s.merge([]*queue.List{&q.Ready})
		}
	}
}
