package engine

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// Limits of how much one Find reads from the store. It runs on the caller's goroutine and holds the lock only while it
// finds candidates.
const (
	scanBytes = 8 << 20 // of records and bodies
	scanJobs  = 5000
	scanPages = 64 // calls of the machine, each of which may examine many jobs without a match
	scanPage  = 256
)

// scan answers a Find with conditions that need records.
func (e *Engine) scan(id core.ClientID, r *core.Reply, op *core.Find) error {
	s := scanner{
		e: e, op: op, reply: r, limit: op.Limit, cursor: op.Cursor, text: strings.ToLower(op.Filter.Text),
		anywhere: strings.ToLower(op.Filter.Anywhere),
	}
	if s.limit <= 0 {
		s.limit = 100
	}
	s.limit = min(s.limit, 1000)
	r.Jobs = []core.JobInfo{}
	err := s.run()
	r.Looked = s.jobs
	if errors.Is(err, core.ErrInvalid) {
		*r = core.Reply{Kind: core.Failed, Tag: r.Tag, Err: core.ErrInvalid}
		return nil
	}
	e.waitFor(id, r.Commit)
	if s.op.WithCount {
		r.Count, r.CountExact = len(r.Jobs), s.op.Cursor == "" && r.NextCursor == ""
	}
	return err
}

// waitFor wakes a client once a commit is durable. A reply that was completed outside the lock depends on this
// commit.
func (e *Engine) waitFor(id core.ClientID, commit core.Commit) {
	if commit == 0 {
		return
	}
	var buf [16]func()
	e.mu.Lock()
	defer crashOnPanic()
	e.machine.DependOn(id, commit)
	wakes, s := e.afterLocked(buf[:0])
	e.mu.Unlock()
	e.notify(wakes, s)
}

// scanner reads records of candidates until a page is full or the limit is reached.
type scanner struct {
	e           *Engine
	op          *core.Find
	reply       *core.Reply
	limit       int
	cursor      string // after the last examined candidate
	text        string // Filter.Text in lower case
	anywhere    string // Filter.Anywhere in lower case
	bytes, jobs int
}

func (s *scanner) run() error {
	for pages := 0; pages < scanPages; pages++ {
		page, err := s.candidates()
		if err != nil {
			return err
		}
		s.reply.Commit = max(s.reply.Commit, page.Commit)
		for i := range page.Jobs {
			over, err := s.candidate(&page.Jobs[i], page.Cursors[i])
			if over || err != nil {
				return err
			}
		}
		if s.cursor = page.Next; s.cursor == "" {
			return nil
		}
	}
	s.stop()
	return nil
}

func (s *scanner) candidates() (machine.Page, error) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	defer crashOnPanic()
	return s.e.machine.FindPage(s.e.nowLocked(), s.op, s.cursor, scanPage)
}

// candidate adds a job to the page if it matches. over means that the page is full or the limit is reached.
func (s *scanner) candidate(i *core.JobInfo, cursor string) (over bool, err error) {
	failed, err := s.failedByWorker(i)
	if !failed || err != nil {
		s.cursor, s.jobs = cursor, s.jobs+1
		return err != nil, err
	}
	n, err := s.e.readJob(i, parts{body: s.op.Filter.BodyText != "" || s.anywhere != "", failure: true})
	switch {
	case errors.Is(err, store.ErrMissing): // removed in the meantime
	case err != nil:
		return true, err
	case s.matches(i):
		if len(s.reply.Jobs) == s.limit {
			s.stop()
			return true, nil
		}
		s.reply.Jobs = append(s.reply.Jobs, *i)
	}
	s.cursor = cursor
	s.bytes, s.jobs = s.bytes+n, s.jobs+1
	if s.bytes >= scanBytes || s.jobs >= scanJobs {
		s.stop()
		return true, nil
	}
	return false, nil
}

// failedByWorker reports whether the worker of the filter has reported the last failure of a job, as its timeline says.
func (s *scanner) failedByWorker(i *core.JobInfo) (bool, error) {
	if s.op.Filter.FailedBy == "" {
		return true, nil
	}
	if i.Fails == 0 || i.Timeline == nil {
		return false, nil
	}
	if err := s.e.readTimeline(i); err != nil && !errors.Is(err, store.ErrMissing) {
		return false, err
	}
	entries := i.Timeline.Entries
	i.Timeline = nil
	for _, e := range slices.Backward(entries) {
		if e.Kind == core.EventFailed {
			return e.Worker == s.op.Filter.FailedBy, nil
		}
	}
	return false, nil
}

// stop ends the page after the last examined candidate.
func (s *scanner) stop() { s.reply.NextCursor, s.reply.Stopped = s.cursor, len(s.reply.Jobs) < s.limit }

// matches checks the conditions for which Filter.NeedsRecords is true.
func (s *scanner) matches(i *core.JobInfo) bool {
	f, failure := &s.op.Filter, i.Failure
	if failure == nil {
		failure = &core.Failure{}
	}
	id := i.Job.Identity()
	shown := func(wanted string) bool { // in the fields that lists show
		contains := func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) }
		return contains(id) || contains(i.Type) || slices.ContainsFunc(i.Tags, contains) || contains(failure.Type) ||
			contains(failure.Message)
	}
	return (f.ErrorClass == "" || failure.Type == f.ErrorClass) && (!f.NoErrorClass || failure.Type == "") &&
		strings.HasPrefix(id, f.IDPrefix) &&
		(s.text == "" || shown(s.text)) &&
		(s.anywhere == "" || shown(s.anywhere) || bytes.Contains(bytes.ToLower(i.Job.Body), []byte(s.anywhere))) &&
		(f.BodyText == "" || bytes.Contains(i.Job.Body, []byte(f.BodyText)))
}
