package machine

import (
	"fmt"
	"math"
	"strings"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/table"
)

// moveSpent is MoveSpent.
func (m *Machine) moveSpent(c *client, op *core.MoveSpent) {
	if !op.IsValid() {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	n := m.table.QueueNumber(op.Queue)
	if n == 0 && op.Rule == (core.SpentRule{}) || n != 0 && m.queues[n].spentRule() == op.Rule {
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.MetaCommit()})
		return
	}
	n = m.queueForLimits(op.Queue)
	q := m.queues[n]
	rule := op.Rule
	rule.To = strings.Clone(rule.To)
	q.setSpent(rule)
	m.storeQueue(q)
	m.dropIdle(n)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

func (q *jobQueue) setSpent(rule core.SpentRule) {
	q.spent = nil
	if rule.Leases > 0 {
		q.spent = &rule
	}
}

func (q *jobQueue) spentRule() (rule core.SpentRule) {
	if q.spent != nil {
		rule = *q.spent
	}
	return rule
}

// leasesHere returns how many leases a job has had since it moved by a SpentRule; without a move, all.
func (m *Machine) leasesHere(h uint32, e *table.Entry) uint32 {
	if x := m.table.Optional(h); x != nil {
		return e.Attempts - x.MovedAfter
	}
	return e.Attempts
}

// setAttempts sets the number of leases of a job; Optional.MovedAfter stays below.
func (m *Machine) setAttempts(h uint32, e *table.Entry, n uint32) {
	e.Attempts = n
	if x := m.table.Optional(h); x != nil {
		x.MovedAfter = min(x.MovedAfter, n)
	}
}

// isSpent reports whether a ready job has had its leases in this queue, so the SpentRule moves it.
func (m *Machine) isSpent(h uint32, e *table.Entry) bool {
	rule := m.queues[e.Queue].spent
	return rule != nil && m.leasesHere(h, e) >= rule.Leases && !e.Has(table.Ephemeral) && e.Extra&table.EndFails == 0 &&
		(e.MaxAttempts == 0 || e.MaxAttempts == math.MaxUint32)
}

// moveSpentJob moves a detached job by the SpentRule of its queue.
func (m *Machine) moveSpentJob(h uint32, e *table.Entry) {
	q, why := m.queues[e.Queue], fmt.Sprintf(core.AttemptsUsedUpMessage, m.leasesHere(h, e))
	if rule := q.spent; rule.ExpiresIn > 0 && e.ExpiresAt != 0 && !e.Has(table.KeepsOutcome) {
		since := e.CreatedAt
		if rule.FromMove {
			since = m.table.Now
		}
		m.table.ExpireAt(h, e, since.Add(rule.ExpiresIn))
	}
	x := m.table.EnsureOptional(h)
	x.MovedFrom, x.MovedAfter = q.Name, e.Attempts
	m.rehome(h, e, q.spent.To, why)
}

// restoreMove restores the changes of moveSpentJob.
func (m *Machine) restoreMove(h uint32, e *table.Entry, s *record.Status) {
	if s.Moved == nil || s.Moved.From == "" && s.Moved.After == 0 {
		return
	}
	x := m.table.EnsureOptional(h)
	x.MovedFrom, x.MovedAfter = s.Moved.From, min(s.Moved.After, e.Attempts)
	if x.TTL != 0 && e.DeadHours == 0 {
		x.TTL = s.ExpiresAt
	}
}

// forgetMove forgets the queue from which a job has moved by a SpentRule, because it moves again. Its leases so far do not count in its
// new queue.
func (m *Machine) forgetMove(h uint32, e *table.Entry) {
	if x := m.table.Optional(h); x != nil && x.MovedFrom != "" {
		x.MovedFrom, x.MovedAfter = "", e.Attempts
	}
}
