package find

// Page calls fn for up to limit jobs, in order, and returns the start of the next page; empty: there is none. It
// searches one job beyond the page, so a cursor means that there are more jobs. stopped: the page is short because the
// effort was spent.
func (s *Search) Page(limit int, fn func(h uint32)) (next string, stopped bool) {
	s.spent, s.undecided = 0, false
	walk, found, last := s.walk(), 0, uint32(0)
	for h := walk.Next(); h != 0 && !s.isPast(h); h = walk.Next() {
		if s.spent++; s.spent > s.effort.Look {
			return s.cursorAfter(last), found < limit
		}
		matches := s.Matches(h)
		if s.undecided {
			break
		}
		if matches {
			if found == limit {
				return s.cursorAfter(last), false
			}
			fn(h)
			found++
		}
		last = h
	}
	if s.undecided {
		return s.cursorAfter(last), found < limit
	}
	s.climbs.drop(s.climb)
	return "", false
}

// cursorAfter returns the cursor after a job; zero: where the page began.
func (s *Search) cursorAfter(h uint32) string {
	if h == 0 {
		return s.cursor(s.start)
	}
	return s.CursorAt(h)
}
