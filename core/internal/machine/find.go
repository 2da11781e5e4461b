package machine

import (
	"slices"

	"broker/core"
	"broker/core/internal/find"
)

// noneFound is the answer of a search without results; read-only.
var noneFound core.Answer

// findJobs lists jobs.
func (m *Machine) findJobs(c *client, op *core.Find) {
	// workers ask for this very often
	if op.Filter.CancelRequested && m.table.StopCount() == 0 && op.Cursor == "" && !op.WithCount {
		m.reply(c, core.Reply{Kind: core.Listed, Tag: op.Tag, Commit: m.table.JobGone(), Answer: &noneFound})
		return
	}
	s, err := find.New(m.table, findHost{m}, m.effort, &m.climbs, op)
	if err != nil {
		m.failed(c, op.Tag, err)
		return
	}
	if op.Filter.NeedsRecords() { // the engine continues outside the lock
		m.replyWith(c, core.Reply{Kind: core.Listed, Tag: op.Tag, Commit: m.table.JobGone(), Answer: &core.Answer{}},
			Work{Needs: FoundByRecords, Find: op})
		return
	}
	page := m.findPage(s, pageLimit(op.Limit), op.Brief)
	r := core.Reply{
		Kind: core.Listed, Tag: op.Tag, Jobs: page.Jobs, Commit: page.Commit,
		Answer: &core.Answer{NextCursor: page.Next, Stopped: page.Stopped},
	}
	if op.WithCount {
		r.Count, r.CountExact = s.Count()
	}
	if op.WithFailures > 0 && s.CountsFailures() {
		r.Failures = s.Failures(op.WithFailures)
	}
	if op.Brief {
		m.reply(c, r)
		return
	}
	m.replyWith(c, r, Work{Needs: FoundJobs})
}

// Page is one page of a list of jobs.
type Page struct {
	Jobs    []core.JobInfo
	Cursors []string // after each of Jobs
	Next    string   // start of the next page; empty: the last page
	Stopped bool     // the page is short because the limit of examined jobs was reached
	Commit  core.Commit
}

// FindPage finds up to limit jobs as far as the index can tell: it ignores the conditions of the filter for which
// NeedsRecords is true.
func (m *Machine) FindPage(now core.Instant, op *core.Find, cursor string, limit int) (Page, error) {
	m.setNow(now)
	again := *op
	again.Cursor = cursor
	s, err := find.New(m.table, findHost{m}, m.effort, &m.climbs, &again)
	if err != nil {
		return Page{}, err
	}
	p := m.findPage(s, limit, false)
	for i := range p.Jobs {
		h := m.table.Handle(p.Jobs[i].Seq)
		p.Cursors = append(p.Cursors, s.CursorAt(h))
		if op.Filter.FailedBy != "" {
			p.Jobs[i].Timeline = m.table.TimelineOf(h)
		}
	}
	return p, nil
}

// findPage fills a page.
func (m *Machine) findPage(s *find.Search, limit int, brief bool) (p Page) {
	p.Commit = m.table.JobGone()
	p.Jobs = make([]core.JobInfo, 0, min(limit, 64))
	p.Next, p.Stopped = s.Page(limit, func(h uint32) {
		p.Jobs = append(p.Jobs, m.jobInfo(h, brief))
		p.Commit = max(p.Commit, m.table.JobCommit(m.table.At(h)))
	})
	return p
}

// findHost is the machine as a search sees it.
type findHost struct{ m *Machine }

// ConnName implements find.Host.
func (c findHost) ConnName(slot uint32) string { return c.m.clients[slot].name }

// IsConnName implements find.Host.
func (c findHost) IsConnName(name string) bool {
	return slices.ContainsFunc(c.m.clients, func(x *client) bool { return x != nil && x.name == name })
}

// BatchParent implements find.Host.
func (c findHost) BatchParent(number uint64) (parent uint64, is bool) {
	if g := c.m.batches.Find(number); g != nil {
		return g.ParentNumber(), true
	}
	return 0, false
}
