package machine

import (
	"fmt"
	"maps"
	"strings"

	"broker/core"
)

// limitName names a limit within its queue.
type limitName struct {
	scope core.LimitScope
	name  string
}

// queuePolicy is the limits and the sharing of a queue. The numbers of its ScopeQueue limit, except for the rate, are in
// jobQueue.limits.
type queuePolicy struct {
	limits  map[limitName]core.QueueLimit
	sharing core.Sharing
	stored  bool // part of it has a meta entry
}

func (s *queuePolicy) empty() bool { return len(s.limits) == 0 && s.sharing.Key.Kind == core.KeyNone }

// putLimit is PutLimit.
func (m *Machine) putLimit(c *client, op *core.PutLimit) {
	name := limitName{op.Limit.Scope, op.Limit.Name}
	if err := m.limitRefusal(&op.Limit, name); err != nil {
		m.refusedAt(c, op.Tag, err, m.table.MetaCommit())
		return
	}
	q := m.queueWithPolicy(op.Limit.Queue)
	name.name = strings.Clone(name.name)
	limit := op.Limit
	limit.Queue, limit.Name = q.Name, name.name
	before, had := q.policy.limits[name]
	q.policy.limits[name] = limit
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.applyPolicy(q, had && !before.FromConfig || !limit.FromConfig)})
}

// limitRefusal is the reason why a limit is refused, nil if there is none.
func (m *Machine) limitRefusal(l *core.QueueLimit, name limitName) error {
	wrong := func(what string) error { return fmt.Errorf("%w: %s", core.ErrInvalid, what) }
	switch {
	case l.Queue == "" || len(l.Queue) > core.MaxQueueName || len(l.Name) > core.MaxIDBytes:
		return wrong("a limit needs the name of a queue; names are bounded")
	case l.Scope > core.ScopeKey:
		return wrong("unknown scope")
	case l.Scope == core.ScopeQueue && l.Name != "":
		return wrong("a limit of the whole queue has no name")
	case l.Throttle == (core.Throttle{}) && l.Name == "":
		return wrong("it limits nothing")
	case l.SlotFor < 0 || l.Rate != 0 && !(l.Rate >= core.MinRate && l.Rate <= core.MaxRate) || l.Burst > 0 && l.Rate == 0:
		return wrong("a rate is between one a day and a million a second, a burst needs a rate, and a time is not negative")
	}
	s := m.policyOf(l.Queue)
	if s == nil {
		return nil
	}
	before, had := s.limits[name]
	switch {
	case had && before.FromConfig && !l.FromConfig:
		return core.ErrConfigured
	case !had && len(s.limits) >= core.MaxLimits:
		return core.ErrFull
	}
	return nil
}

// removeLimit is RemoveLimit.
func (m *Machine) removeLimit(c *client, op *core.RemoveLimit) {
	name, s := limitName{op.Scope, op.Name}, m.policyOf(op.Queue)
	var before core.QueueLimit
	had := false
	if s != nil {
		before, had = s.limits[name]
	}
	switch {
	case !had:
		m.refusedAt(c, op.Tag, core.ErrNoLimit, m.table.MetaCommit())
		return
	case before.FromConfig != op.FromConfig:
		m.refusedAt(c, op.Tag, core.ErrConfigured, m.table.MetaCommit())
		return
	}
	delete(s.limits, name)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.applyPolicy(m.queues[m.table.QueueNumber(op.Queue)], !before.FromConfig)})
}

// shareQueue is ShareQueue.
func (m *Machine) shareQueue(c *client, op *core.ShareQueue) {
	to := op.Sharing
	if err := m.sharingRefusal(&to); err != nil {
		m.refusedAt(c, op.Tag, err, m.table.MetaCommit())
		return
	}
	if to.Key.Kind == core.KeyNone && m.policyOf(to.Queue) == nil {
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.MetaCommit()})
		return
	}
	q := m.queueWithPolicy(to.Queue)
	to.Queue, to.Weights = q.Name, maps.Clone(to.Weights)
	before := q.policy.sharing
	if q.policy.sharing = to; to.Key.Kind == core.KeyNone {
		q.policy.sharing = core.Sharing{}
	}
	wasStored := before.Key.Kind != core.KeyNone && !before.FromConfig
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.applyPolicy(q, wasStored || !to.FromConfig)})
}

// sharingRefusal is the reason why a sharing is refused, nil if there is none.
func (m *Machine) sharingRefusal(s *core.Sharing) error {
	wrong := func(what string) error { return fmt.Errorf("%w: %s", core.ErrInvalid, what) }
	switch {
	case s.Queue == "" || len(s.Queue) > core.MaxQueueName:
		return wrong("a sharing needs the name of a queue")
	case s.Key.Kind > core.KeyUnique || (s.Key.Kind == core.KeyTag) != (s.Key.Tag != "") || len(s.Key.Tag) > core.MaxTagBytes:
		return wrong("the key is a named tag, or comes from the unique key")
	case strings.Contains(s.Key.Tag, ":"):
		return wrong("the name of a tag ends before its first colon")
	case s.Key.Kind == core.KeyNone && (s.Fair || len(s.Weights) > 0), !s.Fair && len(s.Weights) > 0:
		return wrong("fairness needs a key, and weights need fairness")
	case s.Ordered && (s.Key.Kind != core.KeyTag || s.Fair):
		return wrong("order needs a key from a tag, and excludes fairness")
	case len(s.Weights) > core.MaxLimits:
		return wrong("there are too many weights")
	}
	for _, weight := range s.Weights {
		if weight == 0 || weight > core.MaxWeight {
			return wrong("a weight is between 1 and 1,000")
		}
	}
	if old := m.policyOf(s.Queue); old != nil && old.sharing.FromConfig && !s.FromConfig {
		return core.ErrConfigured
	}
	return nil
}

// policyOf is the policy of a queue, nil if it has none.
func (m *Machine) policyOf(name string) *queuePolicy {
	if n := m.table.QueueNumber(name); n != 0 {
		return m.queues[n].policy
	}
	return nil
}

// queueWithPolicy finds or makes a queue with a policy. A new one has no row until it is used.
func (m *Machine) queueWithPolicy(name string) *jobQueue {
	n := m.table.QueueNumber(name)
	if n == 0 {
		n, _ = m.queueNamed(name)
		m.table.Hide(n)
	}
	q := m.queues[n]
	if q.policy == nil {
		q.policy = &queuePolicy{limits: map[limitName]core.QueueLimit{}}
	}
	return q
}

// applyPolicy puts the policy of a queue in force, and stores it if that part of it has changed. It returns the commit that the
// reply rests on.
func (m *Machine) applyPolicy(q *jobQueue, store bool) core.Commit {
	n := m.table.QueueNumber(q.Name)
	whole := q.policy.limits[limitName{scope: core.ScopeQueue}].Throttle
	q.limits.Throttle = whole
	commit := core.Commit(0)
	if store {
		m.storePolicy(q)
		commit = m.table.Promise()
	}
	m.sortLanes(n, q)
	if q.policy.empty() {
		q.policy = nil
	}
	m.offer(n)
	m.dropIdle(n)
	return commit
}
