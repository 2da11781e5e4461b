package conveyor

import (
	"github.com/tidwall/redcon"

	"broker/core"
)

// Limits of what one command goes through.
const (
	maxRange   = 1000    // jobs of a reply, and of a page
	maxCounted = 100_000 // jobs of a count, and members of a set of jobs
)

// walk is a command that goes through the jobs of a namespace, a page a turn, so that other connections are served in
// between. No index of the broker has the jobs of a namespace.
type walk struct {
	namespace string
	search    core.Find
	visit     func(*core.JobInfo) (more bool)
	end       func() []byte // the answer, or that of another walk which it begins
}

// walk begins a walk. It appends the answer if one page is enough; otherwise the session answers in a later turn.
func (s *session) walk(b []byte, w walk) []byte {
	s.Costly = true
	w.search.Tag, w.search.Limit = 1, maxRange
	s.walking = &w
	return append(b, s.nextPage()...)
}

// nextPage goes through the next page of the walk in progress. It returns the answer; empty: there are more pages.
func (s *session) nextPage() []byte {
	w := s.walking
	r := s.ask(&w.search)
	if r.Kind == core.Failed {
		s.walking = nil
		return refuseError(nil, r.Err)
	}
	more := true
	for i := range r.Jobs {
		if _, ok := s.front.nameOf(w.namespace, r.Jobs[i].Queue); ok && more {
			more = w.visit(&r.Jobs[i])
		}
	}
	if w.search.Cursor = r.NextCursor; more && r.NextCursor != "" {
		s.Conn.Wake()
		return nil
	}
	s.walking = nil
	return w.end()
}

// walkOn goes on with the walk in progress, and answers at its end.
func (s *session) walkOn() {
	answer := s.nextPage()
	if s.Reply(answer); s.walking == nil {
		s.Conn.Wake() // to process the input behind it
	}
}

// filterOf selects the jobs in some states that Conveyor clients of a namespace have submitted. For the default
// namespace it also matches jobs of other namespaces, which a walk skips.
func (s *session) filterOf(namespace string, states ...core.State) core.Filter {
	f := core.Filter{Origins: []core.Protocol{core.Conveyor}, States: states}
	if namespace != defaultNamespace {
		f.QueuePrefix = s.front.queueOf(namespace, "")
	}
	return f
}

// count answers with the number of jobs of a namespace in some states, at most maxCounted.
func (s *session) count(b []byte, namespace string, states ...core.State) []byte {
	return s.counted(b, namespace, states, func(n int) []byte { return redcon.AppendInt(nil, int64(n)) })
}

// counted counts as count does, and passes the number to then.
func (s *session) counted(b []byte, namespace string, states []core.State, then func(n int) []byte) []byte {
	n := 0
	return s.walk(b, walk{
		namespace: namespace, search: core.Find{Filter: s.filterOf(namespace, states...), Brief: true},
		visit: func(*core.JobInfo) bool {
			n++
			return n < maxCounted
		},
		end: func() []byte { return then(n) },
	})
}

// part answers with the jobs between two positions of a search.
func (s *session) part(b []byte, namespace string, search core.Find, from, to int) []byte {
	search.Brief = true
	at, seqs := 0, []uint64(nil)
	return s.walk(b, walk{
		namespace: namespace, search: search,
		visit: func(i *core.JobInfo) bool {
			if at >= from && at < to {
				seqs = append(seqs, i.Seq)
			}
			at++
			return at < to
		},
		end: func() []byte { return s.appendJobs(nil, namespace, seqs) },
	})
}

// active passes the uuids of running jobs, of one worker or all, and of jobs that wait for their children, to then: at
// most maxCounted.
func (s *session) active(b []byte, k key, then func(uuids []string) []byte) []byte {
	search := core.Find{Filter: s.filterOf(k.namespace, core.Leased, core.Done)}
	if k.kind == keyWorkerJobs {
		search = core.Find{Filter: core.Filter{Worker: k.name}, Order: core.OrderLeased}
	}
	var uuids []string
	return s.walk(b, walk{
		namespace: k.namespace, search: search,
		visit: func(i *core.JobInfo) bool {
			if isActive(i) && i.Job != nil {
				uuids = append(uuids, i.Job.Identity())
			}
			return len(uuids) < maxCounted
		},
		end: func() []byte { return then(uuids) },
	})
}
