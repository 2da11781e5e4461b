package faktory

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"broker/access"
	"broker/core"
)

// The argument of MUTATE.
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

// targets are the sets that MUTATE changes.
var targets = map[target]core.State{
	"scheduled": core.Scheduled,
	"retries":   core.Retrying,
	"dead":      core.Dead,
}

// changes builds the operation of each command for one job. The operation has no effect if the job has left the set.
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
func (s *session) mutate(_ *pipeline, arg []byte) {
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
	if !s.allowed(access.Operate) {
		return
	}
	s.noteChange("jobs."+m.Cmd, string(m.Target))
	switch filter := m.Filter; {
	case m.Cmd == "clear", m.Cmd == "discard" && filter.all():
		s.start(&removal{pages: s.setPages(from)})
	case filter != nil && len(filter.Jids) > 0:
		s.start(&mutateNamed{jids: filter.Jids, from: from, change: change})
	default:
		pattern, err := filter.pattern()
		if err != nil {
			s.refuse(err.Error())
			return
		}
		s.start(&mutateScan{pattern: pattern, from: from, change: change})
	}
}

// setPages removes a whole set. If there is a namespace, it removes only jobs in the queues of the namespace.
func (s *session) setPages(from core.State) []core.Purge {
	page := core.Purge{States: []core.State{from}, Limit: purgePage}
	if s.front.opts.Namespace == "" {
		return []core.Purge{page}
	}
	var pages []core.Purge
	for _, name := range s.queueNames() {
		page.Queue = name
		pages = append(pages, page)
	}
	return pages
}

// mutatePage is the number of jobs that one step lists or changes.
const mutatePage = 200

// mutateNamed changes the jobs with the given jids.
type mutateNamed struct {
	jids   []string
	from   core.State
	change func(uint64, core.Ref, core.State) core.Op
	commit core.Commit
}

// step changes some of the jobs. It skips jobs that are not in the set.
func (t *mutateNamed) step(s *session) bool {
	n := min(len(t.jids), mutatePage)
	ops := make([]core.Op, 0, n)
	for _, jid := range t.jids[:n] {
		if r := s.ask(&core.Inspect{Tag: s.NextTag(), Ref: core.Ref{ID: jid}, Brief: true}); r.Kind == core.Inspected &&
			strings.HasPrefix(r.Info.Queue, s.front.opts.Namespace) {
			ops = append(ops, t.change(s.NextTag(), core.Ref{Seq: r.Info.Seq}, t.from))
		}
	}
	t.jids = t.jids[n:]
	commit, err := s.doAll(ops)
	t.commit = max(t.commit, commit)
	return s.mutated(t.commit, err, len(t.jids) == 0)
}

// mutated answers a mutation that is complete or has failed. A job that has left the set is not an error.
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

// bytes implements task.
func (t *mutateNamed) bytes() int { return namesBytes(t.jids) }
