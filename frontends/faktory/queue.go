package faktory

import (
	"bytes"
	"encoding/json"
	"strings"

	"broker/access"
	"broker/core"
)

// wildcard names all queues.
const wildcard = "*"

// queue: QUEUE PAUSE|RESUME|REMOVE|LATENCY names….
func (s *session) queue(_ *pipeline, arg []byte) {
	sub, rest, found := bytes.Cut(arg, []byte{' '})
	verb := strings.ToUpper(string(sub))
	names, ok := words(rest)
	if !ok {
		s.refuse(tooManyNames)
		return
	}
	switch verb {
	case "LATENCY":
		s.latency(names)
	case "PAUSE", "RESUME", "REMOVE":
		if !found {
			s.refuse(internalError)
			return
		}
		all := len(names) > 0 && names[0] == wildcard
		if all && !s.allowed(access.Operate) || !all && !s.allowedForAll(access.Operate, names) {
			return
		}
		s.noteChange(map[string]string{
			"PAUSE": "queue.pause", "RESUME": "queue.resume", "REMOVE": "queue.remove",
		}[verb], strings.Join(names, " "))
		if all {
			names = s.queueNames()
		} else {
			for i, name := range names {
				names[i] = s.front.opts.Namespace + name
			}
		}
		if verb == "REMOVE" {
			s.start(&removal{pages: purgesOf(names)})
			return
		}
		s.pause(names, verb == "PAUSE")
	default:
		s.refuse("no such QUEUE subcommand: " + verb)
	}
}

// pause pauses or resumes queues. Unknown queues are ignored.
func (s *session) pause(names []string, paused bool) {
	ops := make([]core.Op, len(names))
	for i, name := range names {
		ops[i] = &core.PauseQueue{Tag: s.NextTag(), Queue: name, Paused: paused}
	}
	commit, err := s.doAll(ops)
	if err != nil {
		s.fail(err, "", commit)
		return
	}
	s.ok(commit)
}

// doAll runs operations and returns the newest commit and the first error.
func (s *session) doAll(ops []core.Op) (commit core.Commit, err error) {
	if len(ops) == 0 {
		return 0, nil
	}
	for _, r := range s.front.broker.Do(s.Client, ops, nil) {
		commit = max(commit, r.Commit)
		if r.Kind == core.Failed && err == nil {
			err = r.Err
		}
	}
	return commit, err
}

// latency answers with the age of the next job of each queue, in seconds.
func (s *session) latency(names []string) {
	if len(names) == 1 && names[0] == wildcard {
		s.refuse("QUEUE LATENCY does not support wildcards")
		return
	}
	if !s.allowedForAll(access.Read, names) {
		return
	}
	seconds := make(map[string]float64, len(names))
	now := s.front.broker.Now()
	var commit core.Commit
	for _, name := range names {
		r := s.ask(&core.InspectQueue{Tag: s.NextTag(), Queue: s.front.opts.Namespace + name})
		commit = max(commit, r.Commit)
		seconds[name] = 0
		if r.Kind == core.Queues && len(r.Queues) == 1 && r.Queues[0].NextEnqueuedAt != 0 {
			seconds[name] = max(now.Sub(r.Queues[0].NextEnqueuedAt), 0).Seconds()
		}
	}
	text, _ := json.Marshal(seconds) // finite numbers always have a JSON form
	s.bulk(text, commit)
}

// queueNames returns the core's names of all queues that clients can see.
func (s *session) queueNames() (names []string) {
	list := core.ListQueueValues{Prefix: s.front.opts.Namespace, Limit: queuePage}
	for {
		list.Tag = s.NextTag()
		page := queueValues(s.ask, list)
		for i := range page {
			names = append(names, page[i].Name)
		}
		if len(page) < queuePage {
			return names
		}
		list.After = names[len(names)-1]
	}
}

// queuePage is the number of queues that are read at once. It keeps the wait of other clients short.
const queuePage = 1000

// queueValues reads a page of queues, with one number for each.
func queueValues(ask func(core.Op) core.Reply, list core.ListQueueValues) []core.QueueValue {
	if r := ask(&list); r.Answer != nil {
		return r.Answer.QueueValues
	}
	return nil
}

// removal is QUEUE REMOVE, FLUSH, or a MUTATE without a filter. It removes jobs in pages.
type removal struct {
	batches *core.PurgeBatches // the batches to remove first; nil: none
	pages   []core.Purge       // the jobs to remove, one after the other
	flush   bool               // reset the counters at the end
	commit  core.Commit
}

// purgePage is the number of jobs that one step removes. A step takes at most a few milliseconds.
const purgePage = 1000

// purgesOf removes the waiting jobs of queues and the queues themselves.
func purgesOf(names []string) []core.Purge {
	pages := make([]core.Purge, len(names))
	for i, name := range names {
		pages[i] = core.Purge{Queue: name, States: []core.State{core.Ready}, Limit: purgePage, Drop: true}
	}
	return pages
}

// step removes one page, or several small ones.
func (t *removal) step(s *session) bool {
	if t.batches != nil { // first, because removing their jobs would release the callbacks
		t.batches.Tag = s.NextTag()
		r := s.ask(t.batches)
		if t.failed(s, &r) {
			return true
		}
		if t.batches.Cursor = r.Cursor; r.Cursor != 0 {
			return false
		}
		t.batches = nil
	}
	for n := 0; n < purgePage && len(t.pages) > 0; {
		page := &t.pages[0]
		page.Tag = s.NextTag()
		r := s.ask(page)
		if t.failed(s, &r) {
			return true
		}
		if page.Cursor = r.Cursor; r.Cursor == 0 {
			t.pages = t.pages[1:]
		}
		n += r.N + 1
	}
	if len(t.pages) > 0 {
		return false
	}
	if t.flush {
		r := s.ask(&core.ResetCounters{Tag: s.NextTag(), Origin: core.Faktory})
		if t.failed(s, &r) {
			return true
		}
	}
	s.ok(t.commit)
	return true
}

// failed answers the command with an error if r is one.
func (t *removal) failed(s *session, r *core.Reply) bool {
	t.commit = max(t.commit, r.Commit)
	if r.Kind == core.Failed {
		s.fail(r.Err, "", t.commit)
	}
	return r.Kind == core.Failed
}

// flushJobs: FLUSH removes as much as the configuration allows. Queues stay known and paused, as in the reference.
func (s *session) flushJobs(*pipeline, []byte) {
	if !s.allowed(access.Operate) {
		return
	}
	page := core.Purge{Limit: purgePage}
	switch s.front.opts.Flush {
	case FlushOff:
		s.refuse("FLUSH is not allowed here")
		return
	case FlushAll:
		page.Origin = core.Internal // any origin
	case FlushFaktory, "":
		page.Origin = core.Faktory
	}
	s.noteChange("jobs.flush", string(s.front.opts.Flush))
	s.start(&removal{batches: &core.PurgeBatches{Limit: purgePage}, pages: []core.Purge{page}, flush: true})
}

// bytes implements task.
func (t *removal) bytes() (n int) {
	const pageBytes = 128
	for i := range t.pages {
		n += len(t.pages[i].Queue) + pageBytes
	}
	return n
}
