package faktory

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"broker/core"
)

// The shapes of MUTATE's argument.
type (
	mutation struct {
		Filter *jobFilter `json:"filter,omitempty"`
		Cmd    string     `json:"cmd"`
		Target target     `json:"target"`
	}
	jobFilter struct {
		Regexp  string   `json:"regexp,omitempty"`
		Jobtype string   `json:"jobtype,omitempty"`
		Jids    []string `json:"jids,omitempty"`
	}
	target string
)

// targets are the sets that can be changed.
var targets = map[target]core.State{
	"scheduled": core.Scheduled,
	"retries":   core.Retrying,
	"dead":      core.Dead,
}

// changes make the operation of each command for one job, which must still be in the set.
var changes = map[string]func(tag uint64, ref core.Ref, from core.State) core.Op{
	"kill": func(tag uint64, ref core.Ref, from core.State) core.Op {
		return &core.Bury{Tag: tag, Ref: ref, If: core.InState(from)}
	},
	"discard": func(tag uint64, ref core.Ref, from core.State) core.Op {
		return &core.Cancel{Tag: tag, Ref: ref, If: core.InState(from)}
	},
	"requeue": func(tag uint64, ref core.Ref, from core.State) core.Op {
		return &core.Enqueue{Tag: tag, Ref: ref, If: core.InState(from)}
	},
}

// mutate: MUTATE {cmd, target, filter}.
func (s *session) mutate(_ *scratch, arg []byte) {
	if !utf8.Valid(arg) {
		s.refuse(errUTF8.Error())
		return
	}
	var m mutation
	if err := json.Unmarshal(arg, &m); err != nil {
		s.refuse(referenceTerms.Replace(err.Error()))
		return
	}
	change, known := changes[m.Cmd]
	if !known && m.Cmd != "clear" {
		s.refuse("unknown mutate operation")
		return
	}
	from, known := targets[m.Target]
	if !known {
		s.refuse("invalid target for mutation command")
		return
	}
	switch filter := m.Filter; {
	case m.Cmd == "clear", m.Cmd == "discard" && filter.all():
		s.start(&removal{pages: s.setPages(from)})
	case filter != nil && len(filter.Jids) > 0:
		s.start(&mutateNamed{jids: filter.Jids, from: from, change: change})
	default:
		s.start(&mutateScan{match: filter.matcher(), from: from, change: change, prefix: s.f.o.Namespace})
	}
}

// all reports that the filter lets every job through.
func (filter *jobFilter) all() bool {
	return filter == nil || len(filter.Jids) == 0 && filter.Jobtype == "" && strings.Trim(filter.Regexp, "*") == ""
}

// setPages removes a whole set: of every queue, or of those in the name space if there is one.
func (s *session) setPages(from core.State) []core.Purge {
	page := core.Purge{States: []core.State{from}, Limit: purgePage}
	if s.f.o.Namespace == "" {
		return []core.Purge{page}
	}
	var pages []core.Purge
	for _, name := range s.queueNames() {
		page.Queue = name
		pages = append(pages, page)
	}
	return pages
}

// matcher tells whether a job passes the filter. text is the job's compact JSON, made only where it is asked for. nil:
// every job passes.
func (filter *jobFilter) matcher() func(job *core.Job, text func() []byte) bool {
	switch {
	case filter.all():
		return nil
	case filter.Regexp == "": // the name alone is a pattern
		return func(job *core.Job, _ func() []byte) bool { return glob(filter.Jobtype, job.Type) }
	case filter.Jobtype == "":
		return func(_ *core.Job, text func() []byte) bool { return glob(filter.Regexp, text()) }
	}
	return func(job *core.Job, text func() []byte) bool {
		return job.Type == filter.Jobtype && glob(filter.Regexp, text())
	}
}

// mutatePage is how many jobs one step looks at or changes. Their JSON may have to come from disk.
const mutatePage = 200

// mutateNamed changes the jobs with the given ids.
type mutateNamed struct {
	jids   []string
	from   core.State
	change func(uint64, core.Ref, core.State) core.Op
	commit core.Commit
}

// step changes some of them; those that are not in the set are left alone.
func (t *mutateNamed) step(s *session) bool {
	n := min(len(t.jids), mutatePage)
	b := s.f.borrow()
	defer s.f.giveBack(b)
	for _, jid := range t.jids[:n] {
		if r := s.ask(&core.Inspect{Tag: s.nextTag(), Ref: core.Ref{ID: jid}, Brief: true}); r.Kind == core.Inspected &&
			strings.HasPrefix(r.Info.Queue, s.f.o.Namespace) {
			b.ops = append(b.ops, t.change(s.nextTag(), core.Ref{Seq: r.Info.Seq}, t.from))
		}
	}
	t.jids = t.jids[n:]
	commit, err := s.doAll(b)
	t.commit = max(t.commit, commit)
	return s.mutated(t.commit, err, len(t.jids) == 0)
}

// mutated ends a mutation that is over or cannot go on. That single jobs had left their set is nobody's mistake.
func (s *session) mutated(commit core.Commit, err error, over bool) bool {
	switch {
	case fatal(err):
		s.fail(err, "", commit)
		return true
	case over:
		s.ok(commit)
	}
	return over
}

// mutateScan walks over a set and changes the jobs that match.
type mutateScan struct {
	match  func(*core.Job, func() []byte) bool
	from   core.State
	change func(uint64, core.Ref, core.State) core.Op
	prefix string
	cursor uint64
	commit core.Commit
}

// step looks at one page of the set.
func (t *mutateScan) step(s *session) bool {
	page := s.ask(&core.ListJobs{
		Tag: s.nextTag(), State: t.from, Cursor: t.cursor, Limit: mutatePage, Brief: t.match == nil,
	})
	b := s.f.borrow()
	defer s.f.giveBack(b)
	for i := range page.Jobs {
		info := &page.Jobs[i]
		if strings.HasPrefix(info.Queue, t.prefix) && t.matches(s.f, b, info) {
			b.ops = append(b.ops, t.change(s.nextTag(), core.Ref{Seq: info.Seq}, t.from))
		}
	}
	t.cursor = page.Cursor
	commit, err := s.doAll(b)
	t.commit = max(t.commit, commit)
	return s.mutated(t.commit, err, t.cursor == 0)
}

func (t *mutateScan) matches(f *Frontend, b *scratch, info *core.JobInfo) bool {
	if t.match == nil {
		return true
	}
	if info.Job == nil {
		return false // gone since the page was listed
	}
	return t.match(info.Job, func() []byte {
		b.json = f.appendCompactJob(b.json[:0], info)
		return b.json
	})
}

// appendCompactJob writes a job's JSON without white space: what patterns are matched against.
func (f *Frontend) appendCompactJob(b []byte, info *core.JobInfo) []byte {
	return appendCompact(b, f.appendJob(nil, info.Job, jobState{failure: info.Failure}))
}
