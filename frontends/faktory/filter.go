package faktory

import (
	"strings"

	"broker/core"
	"broker/frontends/shared/glob"
)

// all reports whether the filter matches every job.
func (filter *jobFilter) all() bool {
	return filter == nil || len(filter.Jids) == 0 && filter.Jobtype == "" && strings.Trim(filter.Regexp, "*") == ""
}

// jobPattern is a compiled filter by jobtype, by the job's JSON, or by both.
type jobPattern struct {
	jobtype  string        // the exact type; empty: any
	typeGlob *glob.Pattern // nil: any type
	jsonGlob *glob.Pattern // nil: any job
}

// pattern compiles the filter; nil if it matches every job. As in the reference server, the jobtype is a pattern if
// there is no regexp, and an exact text otherwise. The error is sent to the client.
func (filter *jobFilter) pattern() (p *jobPattern, err error) {
	if filter.all() {
		return nil, nil
	}
	p = new(jobPattern)
	if filter.Regexp == "" {
		p.typeGlob, err = glob.Compile(filter.Jobtype)
		return p, err
	}
	p.jobtype = filter.Jobtype
	p.jsonGlob, err = glob.Compile(filter.Regexp)
	return p, err
}

// matchesType reports whether the type matches. It does not need to read the job.
func (p *jobPattern) matchesType(info *core.JobInfo) bool {
	return (p.jobtype == "" || p.jobtype == info.Type) && (p.typeGlob == nil || p.typeGlob.Match([]byte(info.Type)))
}

// appendCompactJob writes a job's JSON without white space: the text that patterns are matched against.
func (f *Frontend) appendCompactJob(b []byte, info *core.JobInfo) []byte {
	start := len(b)
	b = f.appendJob(b, info.Job, jobState{failure: info.Failure})
	return appendCompact(b[:start], b[start:]) // in place, because the text only gets shorter
}

// mutateScan walks over a set and changes the matching jobs. Lists and types come from the index. It reads a job only
// to match its JSON, one job at a time.
type mutateScan struct {
	pattern *jobPattern // nil: every job matches
	from    core.State
	change  func(uint64, core.Ref, core.State) core.Op
	page    []core.JobInfo // listed jobs, to be checked
	cursor  uint64         // start of the next page; zero: none
	commit  core.Commit
}

// scanBytes bounds the jobs that one step reads, in bytes. Each job counts jobCost in addition to its size.
const (
	scanBytes = 256 << 10
	jobCost   = 4 << 10
)

// step checks some jobs of the set.
func (t *mutateScan) step(s *session) bool {
	if len(t.page) == 0 {
		r := s.ask(&core.ListJobs{Tag: s.NextTag(), State: t.from, Cursor: t.cursor, Limit: mutatePage, Brief: true})
		t.page, t.cursor, t.commit = r.Jobs, r.Cursor, max(t.commit, r.Commit)
	}
	ops := make([]core.Op, 0, len(t.page))
	for bytes := 0; len(t.page) > 0 && bytes < scanBytes; t.page = t.page[1:] {
		info := &t.page[0]
		if !strings.HasPrefix(info.Queue, s.front.opts.Namespace) || t.pattern != nil && !t.pattern.matchesType(info) {
			continue
		}
		if t.pattern != nil && t.pattern.jsonGlob != nil {
			bytes += jobCost + info.BodyBytes
			if !t.matchesJSON(s, info.Seq) {
				continue
			}
		}
		ops = append(ops, t.change(s.NextTag(), core.Ref{Seq: info.Seq}, t.from))
	}
	commit, err := s.doAll(ops)
	t.commit = max(t.commit, commit)
	return s.mutated(t.commit, err, len(t.page) == 0 && t.cursor == 0)
}

// matchesJSON reads a job and matches its JSON. A job that no longer exists does not match.
func (t *mutateScan) matchesJSON(s *session, seq uint64) bool {
	r := s.ask(&core.Inspect{Tag: s.NextTag(), Ref: core.Ref{Seq: seq}})
	if r.Kind != core.Inspected || r.Info.Job == nil {
		return false
	}
	p := s.Pipeline
	p.json = s.front.appendCompactJob(p.json[:0], r.Info)
	return t.pattern.jsonGlob.Match(p.json)
}

// bytes implements task: a compiled pattern.
func (t *mutateScan) bytes() int { return 16 << 10 }
