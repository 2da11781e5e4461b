package machine

import (
	"cmp"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/queue"
)

// groupIndex finds retrying and dead jobs by their failure group: the group that the failure names, otherwise its type. The group
// number uses the field that holds the holder of a leased job, so that a group costs only its list.
type groupIndex struct {
	names nameTable
	jobs  []queue.List // by number, in the order of Seq

	counts map[failureKey]int // of listed jobs; only jobs that fail or are killed cost time here
}

// failureKey is what retrying and dead jobs are counted by.
type failureKey struct {
	state              core.State
	group, kind, queue uint32
}

// countFailure adds n to the count of a job's group and type, if the job is listed as retrying or dead. Call it with -1 before the
// group or the type of such a job changes and with 1 after.
func (m *Machine) countFailure(e *entry, n int) {
	if !e.has(listed) || e.state != core.Retrying && e.state != core.Dead {
		return
	}
	key := failureKey{e.state, e.holder, e.kind, e.queue}
	if m.groups.counts[key] += n; m.groups.counts[key] == 0 {
		delete(m.groups.counts, key)
	}
}

// failures are the largest counts by failure group and type of the jobs that match.
func (s *search) failures(limit int) []core.FailureCount {
	type name struct{ group, kind, queue uint32 } // queue: if its name is the type
	sums := map[name]int{}
	for key, n := range s.m.groups.counts {
		if !s.states.has(key.state) || !s.hasQueue(key.queue) {
			continue
		}
		of := name{group: key.group, kind: key.kind}
		if key.kind == 0 {
			of.queue = key.queue
		}
		sums[of] += n
	}
	all := make([]core.FailureCount, 0, len(sums))
	for of, n := range sums {
		typ := s.m.types.names[of.kind]
		if of.kind == 0 {
			typ = s.m.queues[of.queue].name
		}
		all = append(all, core.FailureCount{Group: s.m.groups.names.names[of.group], Type: typ, Jobs: n})
	}
	slices.SortFunc(all, func(a, b core.FailureCount) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Group, b.Group), strings.Compare(a.Type, b.Type))
	})
	return all[:min(len(all), limit)]
}

// groupOf is the failure group of a failure; empty: none.
func groupOf(f *core.Failure) string { return cmp.Or(f.Group, f.Type) }

// joinGroup adds a job to its failure group, if it has one.
func (m *Machine) joinGroup(h uint32, e *entry) {
	name := ""
	if t := m.transients[h]; e.has(hasTransient) && t.failure != nil {
		name = groupOf(t.failure)
	}
	m.joinGroupNamed(h, e, name)
}

func (m *Machine) joinGroupNamed(h uint32, e *entry, name string) {
	g := &m.groups
	if name == "" || e.holder != 0 {
		return
	}
	m.countFailure(e, -1)
	e.holder = g.names.acquireCopy(name)
	m.countFailure(e, 1)
	for int(e.holder) >= len(g.jobs) {
		g.jobs = append(g.jobs, queue.List{})
	}
	g.jobs[e.holder].Push(h, m.older)
}

func (m *Machine) leaveGroup(h uint32, e *entry) {
	if e.holder == 0 {
		return
	}
	g := &m.groups
	g.jobs[e.holder].Remove(h, m.older)
	if g.names.release(e.holder) {
		g.jobs[e.holder] = queue.List{}
	}
	m.countFailure(e, -1)
	e.holder = 0
	m.countFailure(e, 1)
}

// groupName is the failure group of a retrying or dead job.
func (m *Machine) groupName(e *entry) string {
	switch e.state {
	case core.Retrying, core.Dead:
		return m.groups.names.names[e.holder]
	case core.Gone, core.Scheduled, core.Blocked, core.Ready, core.Leased, core.Done:
	}
	return ""
}

// older is the order of submission.
func (m *Machine) older(a, b uint32) bool { return m.jobs.at(a).seq < m.jobs.at(b).seq }
