package gearman

import "broker/core"

// A listing is written in pages, so that neither the broker nor other connections wait for a long one, and no more of it
// is in memory than its reader has still to read.
const (
	pageJobs  = 1000
	pageBytes = 256 << 10
)

// listing is a text command that is being answered in pages.
type listing struct {
	next   func(*listing, *session) (more bool) // writes one page
	pushes []core.Reply                         // came in between; written after the list

	cursor  uint64      // show jobs: where the broker goes on
	entries []connEntry // workers: those not written yet
}

// list answers what came before, then begins a listing.
func (s *session) list(l *listing) {
	s.flush(false)
	s.listing = l
	s.page()
}

// page writes the listing's next page, or what is left of it if the client sends no more, and reports whether it is
// complete. If not, it has seen to it that Deliver is called again.
func (s *session) page() bool {
	for {
		if !s.eof && s.conn.Backpressured() {
			return false
		}
		if !s.listing.next(s.listing, s) {
			break
		}
		if !s.eof {
			s.conn.Wake()
			return false
		}
	}
	s.conn.Out().WriteString(endOfList)
	pushes := s.listing.pushes
	s.listing = nil
	for i := range pushes {
		s.Push(&pushes[i])
	}
	return true
}

// nextJobs writes the next rows of show jobs.
func (l *listing) nextJobs(s *session) bool { return l.fetch(s, &core.ListJobs{Brief: true}, writeJob) }

// nextUniques writes the next rows of show unique jobs.
func (l *listing) nextUniques(s *session) bool {
	return l.fetch(s, &core.ListJobs{NoBody: true}, writeUnique)
}

// fetch asks for a page of jobs, writes those that Gearman knows and this front-end may show, and keeps what else the
// broker has for the session.
func (l *listing) fetch(s *session, op *core.ListJobs, write func(*session, []byte, *core.JobInfo) []byte) (more bool) {
	s.tag++
	op.Tag, op.Cursor, op.Limit = s.tag, l.cursor, pageJobs
	first := len(l.pushes)
	l.pushes = s.f.broker.Do(s.client, []core.Op{op}, l.pushes)
	kept := l.pushes[:first]
	for _, r := range l.pushes[first:] {
		if r.Tag != op.Tag {
			kept = append(kept, r)
			continue
		}
		b := s.conn.Out().Buf()
		for i := range r.Jobs {
			if j := &r.Jobs[i]; isUnfinished(j) && s.f.owns(j.Queue) && (op.Brief || j.Job != nil) {
				b = append(write(s, b, j), '\n')
			}
		}
		s.conn.Out().Put(b, r.Commit)
		l.cursor, more = r.Cursor, r.Cursor != 0
	}
	clear(l.pushes[len(kept):])
	l.pushes = kept
	return more
}

// writeJob writes a row of show jobs:
//
//	handle TAB retries TAB ignored TAB queued         queued: 1 for a background job
func writeJob(s *session, b []byte, j *core.JobInfo) []byte {
	retries := int(j.Attempts)
	if j.State == core.Leased && retries > 0 {
		retries--
	}
	stored := 1
	if j.Ephemeral {
		stored = 0
	}
	return appendColumn(appendColumn(appendColumn(s.f.o.Handles.Append(b, j.Seq), retries), 0), stored)
}

// writeUnique writes a row of show unique jobs; a job without a unique has an empty one.
func writeUnique(_ *session, b []byte, j *core.JobInfo) []byte { return append(b, uniqueOf(j.Job)...) }

// nextWorkers writes the next rows of workers.
func (l *listing) nextWorkers(s *session) bool {
	b := s.conn.Out().Buf()
	for start := len(b); len(l.entries) > 0 && len(b)-start < pageBytes; l.entries = l.entries[1:] {
		b = l.entries[0].write(b)
	}
	s.conn.Out().Put(b, 0)
	return len(l.entries) > 0
}
