package gearman

import (
	"encoding/hex"

	"broker/access"
	"broker/core"
)

// A listing is written in pages, so that a long listing does not delay other connections and memory holds only the part
// that the client has not read.
const (
	pageJobs  = 1000
	pageBytes = 256 << 10
)

// listing is the answer in progress to a text command, or a command that takes several steps.
type listing struct {
	next   func(*listing, *session) (more bool) // writes a page
	pushes []core.Reply                         // received during the listing; written after it

	cursor     uint64      // show jobs, drop: where the next page starts
	after      string      // status: the last queue written
	priorities bool        // status: the command is prioritystatus
	entries    []connEntry // workers: not written yet
	queue      string      // drop: the queue to drop
	line       bool        // the answer is one line
}

// list answers the earlier messages, then starts a listing.
func (s *session) list(l *listing) {
	s.Flush()
	s.listing = l
	s.page()
}

// page writes the next page, or all pages after EOF, and reports whether the listing is complete. If not, Deliver will
// be called again.
func (s *session) page() bool {
	for {
		if !s.HalfClosed && s.Conn.Backpressured() {
			return false
		}
		if !s.listing.next(s.listing, s) {
			break
		}
		if !s.HalfClosed {
			s.Conn.Wake()
			return false
		}
	}
	if !s.listing.line {
		s.Conn.Out().WriteString(endOfList)
	}
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

// fetch lists a page of jobs and writes the unfinished jobs in the namespace. It keeps pushes for later.
func (l *listing) fetch(s *session, op *core.ListJobs, write func(*session, []byte, *core.JobInfo) []byte) (more bool) {
	op.Tag, op.Cursor, op.Limit = s.NextTag(), l.cursor, pageJobs
	l.ask(s, op, func(r *core.Reply) {
		b := s.Conn.Out().Buf()
		for i := range r.Jobs {
			if j := &r.Jobs[i]; isUnfinished(j) && s.front.owns(j.Queue) && (op.Brief || j.Job != nil) {
				b = append(write(s, b, j), '\n')
			}
		}
		s.Conn.Out().Put(b, r.Commit)
		l.cursor, more = r.Cursor, r.Cursor != 0
	})
	return more
}

// nextQueues writes the next rows of status or prioritystatus.
func (l *listing) nextQueues(s *session) (more bool) {
	l.ask(s, &core.ListQueues{Tag: s.NextTag(), Prefix: s.front.opts.Namespace, After: l.after, Limit: pageJobs},
		func(r *core.Reply) {
			s.Conn.Out().Put(s.appendQueues(s.Conn.Out().Buf(), r.Queues, l.priorities), r.Commit)
			if more = len(r.Queues) == pageJobs; more {
				l.after = r.Queues[pageJobs-1].Name
			}
		})
	return more
}

// nextDrop removes the next jobs of a function. After the last job it writes the answer.
func (l *listing) nextDrop(s *session) (more bool) {
	op := &core.DropQueue{Tag: s.NextTag(), Queue: l.queue, FoldCase: true, Cursor: l.cursor}
	l.ask(s, op, func(r *core.Reply) {
		switch l.cursor = r.Cursor; {
		case r.Kind == core.Failed:
			s.Conn.Out().Put(append(s.Conn.Out().Buf(), lineError(r.Err)...), r.Commit)
		case r.Cursor != 0:
			more = true
		default:
			s.noteChange(&access.Change{Action: "queue.remove", Target: l.queue})
			s.Conn.Out().Put(append(s.Conn.Out().Buf(), lineOK...), r.Commit)
		}
	})
	return more
}

// ask runs one operation and passes its reply to answer. It keeps other replies for later.
func (l *listing) ask(s *session, op core.Op, answer func(*core.Reply)) {
	first := len(l.pushes)
	l.pushes = s.front.broker.Do(s.Client, []core.Op{op}, l.pushes)
	kept := l.pushes[:first]
	for i := range l.pushes[first:] {
		if r := &l.pushes[first+i]; r.Tag == op.TagOf() {
			answer(r)
		} else {
			kept = append(kept, *r)
		}
	}
	clear(l.pushes[len(kept):])
	l.pushes = kept
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
	return appendColumn(appendColumn(appendColumn(s.front.opts.Handles.Append(b, j.Seq), retries), 0), stored)
}

// writeUnique writes a row of show unique jobs; a job without a unique has an empty one. A lone dot would end the list.
func writeUnique(_ *session, b []byte, j *core.JobInfo) []byte {
	if unique := uniqueOf(j.Job); unique != "." {
		return appendText(b, unique)
	}
	return append(b, "%2e"...)
}

// appendText appends a name or an id that a client has chosen. Control characters, which could forge lines and columns,
// are written as % and two hex digits.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == 0x7f {
			b = hex.AppendEncode(append(b, '%'), []byte{c})
			continue
		}
		b = append(b, text[i])
	}
	return b
}

// nextWorkers writes the next rows of workers.
func (l *listing) nextWorkers(s *session) bool {
	b := s.Conn.Out().Buf()
	for start := len(b); len(l.entries) > 0 && len(b)-start < pageBytes; l.entries = l.entries[1:] {
		b = l.entries[0].write(b)
	}
	s.Conn.Out().Put(b, 0)
	return len(l.entries) > 0
}
