package machine

import (
	"cmp"

	"broker/core"
	"broker/core/internal/queue"
)

// groupIndex finds retrying and dead jobs by their failure group: the group that the failure names, otherwise its type. The group
// number uses the field that holds the holder of a leased job, so that a group costs only its list.
type groupIndex struct {
	names nameTable
	jobs  []queue.List // by number, in the order of Seq
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
	e.holder = g.names.acquireCopy(name)
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
	e.holder = 0
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
