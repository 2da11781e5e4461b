package find

// inWorkflow reports whether a job or batch is the one that the filter names, or is below it: a child, a member, a callback, or a job that
// waits for one of these. There are no cycles, and each link is followed only once for a search.
func (s *Search) inWorkflow(number uint64) bool {
	if s.below == nil {
		s.below = map[uint64]bool{s.f.Workflow: true, 0: false}
	}
	for open := []uint64{number}; len(open) > 0; {
		n := open[len(open)-1]
		if _, known := s.below[n]; known {
			open = open[:len(open)-1]
			continue
		}
		is, before := false, len(open)
		s.above(n, func(above uint64) {
			if below, known := s.below[above]; known {
				is = is || below
			} else {
				open = append(open, above)
			}
		})
		if is || len(open) == before {
			s.below[n] = is
		}
	}
	return s.below[number]
}

// above calls f for everything that a job or batch is directly below.
func (s *Search) above(number uint64, f func(uint64)) {
	if parent, is := s.host.BatchParent(number); is {
		f(parent)
		return
	}
	h := s.table.Handle(number)
	if h == 0 {
		return
	}
	x := s.table.Optional(h)
	if x == nil {
		return
	}
	f(x.Parent)
	f(x.Batch)
	f(x.CallbackFor)
	for _, seq := range x.Waiting {
		f(seq)
	}
}
