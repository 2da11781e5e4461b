package gearman

import "broker/core"

// A listing reads the broker's jobs in pages, so that neither the broker nor other connections wait for a long one, and
// no more of it is in memory than its reader has still to read.
const (
	pageJobs     = 1000
	pagesPerTurn = 8
	listingAhead = 4 << 20 // bytes
)

// listing is a `show jobs` or `show unique jobs` that is being answered.
type listing struct {
	uniques bool
	cursor  uint64
	pushes  []core.Reply // came in between; written after the list
}

// list answers what came before, then begins a listing.
func (s *session) list(l *listing) {
	s.flush()
	s.listing = l
	s.page()
}

// page goes on with the listing for a turn and reports whether it is complete. If not, it has seen to it that Deliver
// is called again.
func (s *session) page() bool {
	out := s.conn.Out()
	for pages := 0; ; pages++ {
		switch ahead := out.Len(); {
		case s.eof && ahead <= s.f.o.MaxOutputBytes:
			// the client waits for nothing but this
		case ahead > listingAhead:
			s.f.stall(s.conn)
			return false
		case pages == pagesPerTurn:
			s.conn.Wake()
			return false
		}
		if !s.nextPage() {
			break
		}
	}
	out.WriteString(endOfList)
	pushes := s.listing.pushes
	s.listing = nil
	for i := range pushes {
		s.reply(&pushes[i])
	}
	return true
}

// nextPage writes one page and reports whether there are more.
func (s *session) nextPage() (more bool) {
	l := s.listing
	op := &core.ListJobs{Tag: s.round << tagBits, Cursor: l.cursor, Limit: pageJobs, Brief: !l.uniques}
	first := len(l.pushes)
	l.pushes = s.f.broker.Do(s.client, []core.Op{op}, l.pushes)
	kept := l.pushes[:first]
	for _, r := range l.pushes[first:] {
		if r.Tag != op.Tag {
			kept = append(kept, r)
			continue
		}
		s.writeJobs(r.Jobs)
		l.cursor = r.Cursor
		more = r.Kind == core.Listed && r.Cursor != 0
	}
	clear(l.pushes[len(kept):])
	l.pushes = kept
	s.round++
	return more
}

// writeJobs writes the rows of jobs that Gearman knows and this front-end may show:
//
//	handle TAB retries TAB ignored TAB queued         queued: 1 for a background job
func (s *session) writeJobs(jobs []core.JobInfo) {
	out := s.conn.Out()
	b := out.Buf()
	for i := range jobs {
		j := &jobs[i]
		if !unfinished(j) || !s.f.owns(j.Queue) {
			continue
		}
		if s.listing.uniques {
			b = append(append(b, uniqueOf(j.Job)...), '\n')
			continue
		}
		retries := int(j.Attempts)
		if j.State == core.Leased && retries > 0 {
			retries--
		}
		stored := 1
		if j.Ephemeral {
			stored = 0
		}
		b = appendColumn(appendColumn(appendColumn(s.f.handles.add(b, j.Seq), retries), 0), stored)
		b = append(b, '\n')
	}
	out.Put(b, 0)
}
