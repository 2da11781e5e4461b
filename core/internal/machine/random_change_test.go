package machine_test

import (
	"fmt"
	"time"

	"broker/core"
)

// change returns a random operation that changes the fields, the queue or the holder of a job.
func (l *history) change() core.Op {
	ref, is := l.ref(), l.condition()
	switch l.rng.IntN(8) {
	case 0:
		if l.maybe(2) {
			return &core.LeaseJob{Ref: ref, Worker: fmt.Sprint("worker ", l.rng.IntN(3)), LeaseFor: l.span()}
		}
		return &core.TransferLease{
			Ref: ref, Epoch: uint32(1 + l.rng.IntN(3)), Worker: fmt.Sprint("worker ", l.rng.IntN(3)),
		}
	case 1, 2, 3, 4:
		op := &core.Move{Ref: ref, If: is, Authority: core.FinishAuthority(l.rng.IntN(3)), Set: l.set()}
		op.Set.ReadyAt = nil
		if l.maybe(2) {
			op.Queue = l.queue()
		}
		if l.maybe(3) {
			op.ReadyAt = l.soon()
		}
		if l.maybe(3) {
			op.After = l.refs()
		}
		return op
	}
	return &core.Update{Ref: ref, If: is, Set: l.set()}
}

// atomic returns a list of random operations.
func (l *history) atomic(p core.Protocol) core.Op {
	op := &core.Atomic{}
	for range l.rng.IntN(4) {
		switch l.rng.IntN(8) {
		case 0, 1, 2:
			op.Ops = append(op.Ops, l.change())
		case 3, 4:
			op.Ops = append(op.Ops, l.order())
		case 5, 6:
			op.Ops = append(op.Ops, l.finish())
		default:
			op.Ops = append(op.Ops, l.submit(p))
		}
	}
	return op
}

func (l *history) refs() []core.Ref { return []core.Ref{l.ref(), l.ref()}[:l.rng.IntN(3)] }

// set changes some fields.
func (l *history) set() (set core.JobChange) {
	maybe(l, &set.Priority, l.priority)
	maybe(l, &set.Type, func() string { return []string{"", "q1", "another"}[l.rng.IntN(3)] })
	maybe(l, &set.Tags, func() []string { return [][]string{nil, {"c"}, {"a:1"}, {"a:3"}}[l.rng.IntN(4)] })
	maybe(l, &set.Body, func() core.Body { return core.Body{Bytes: make([]byte, l.rng.IntN(2000))} })
	maybe(l, &set.ReadyAt, func() core.Instant { return l.soon() * core.Instant(l.rng.IntN(2)) })
	maybe(l, &set.ExpiresAt, func() core.Instant { return l.soon() * core.Instant(l.rng.IntN(2)) })
	maybe(l, &set.LeaseFor, func() time.Duration { return l.span() * time.Duration(l.rng.IntN(2)) })
	maybe(l, &set.MaxAttempts, func() uint32 { return uint32(l.rng.IntN(4)) })
	maybe(l, &set.MaxFails, func() uint32 { return uint32(l.rng.IntN(4)) })
	maybe(l, &set.Attempts, func() uint32 { return uint32(l.rng.IntN(2)) })
	maybe(l, &set.Fails, func() uint32 { return uint32(l.rng.IntN(3)) })
	maybe(l, &set.Backoff, func() core.Backoff { return core.Backoff(l.rng.IntN(2)) })
	maybe(l, &set.Exhausted, func() core.Exhausted { return core.Exhausted(l.rng.IntN(2)) })
	maybe(l, &set.Attributes, func() []byte { return []byte("{}") })
	return set
}

func maybe[T any](l *history, to **T, value func() T) {
	if l.maybe(5) {
		v := value()
		*to = &v
	}
}

// schedule returns a random operation on schedules.
func (l *history) schedule() core.Op {
	name := fmt.Sprint("schedule ", l.rng.IntN(3))
	switch l.rng.IntN(6) {
	case 0:
		return &core.RemoveSchedule{Name: name, FromConfig: l.maybe(3)}
	case 1:
		return &core.PauseSchedule{Name: name, Paused: l.maybe(2)}
	case 2:
		op := &core.RunSchedule{Name: name}
		if l.maybe(2) {
			op.UpTo = l.soon()
		}
		return op
	}
	s := core.Schedule{
		Name: name, Backlog: l.rng.IntN(3), Missed: core.Missed(l.rng.IntN(3)), Paused: l.maybe(4),
		FromConfig: l.maybe(3),
	}
	if l.maybe(2) {
		s.Cron = "* * * * *"
	} else {
		s.Every, s.Offset = time.Duration(1+l.rng.IntN(3))*7*time.Second, time.Duration(l.rng.IntN(3))*time.Second
	}
	if s.Missed == core.MissedAll {
		s.MaxMissed = l.rng.IntN(3)
	}
	s.Job = l.job(core.Faktory)
	s.Job.ReadyAt, s.Job.ExpiresAt, s.Job.StartBefore, s.Job.UniqueUntil, s.Job.RetainUntil = 0, core.Instant(
		l.rng.IntN(3)*20_000_000,
	), 0, 0, 0
	if l.maybe(4) {
		s.NextAt = max(l.soon(), 1)
	}
	return &core.PutSchedule{Schedule: s, Create: l.maybe(3), Revision: uint64(l.rng.IntN(4) / 3)}
}

// limit returns a random operation on the limits of a queue.
func (l *history) limit(q string) core.Op {
	scope, name, fromConfig := core.LimitScope(l.rng.IntN(3)), "", l.maybe(3)
	if scope != core.ScopeQueue && l.maybe(2) {
		name = []string{"a", "T", "key 1", "key 2"}[l.rng.IntN(4)]
	}
	switch l.rng.IntN(6) {
	case 0:
		return &core.RemoveLimit{ID: core.LimitID{Queue: q, Scope: scope, Of: name}, FromConfig: fromConfig}
	case 1, 2:
		s := core.Sharing{Queue: q, Key: core.JobKey{Kind: core.KeyKind(l.rng.IntN(3))}, FromConfig: fromConfig}
		if s.Key.Kind == core.KeyTag {
			s.Key.Tag = "a"
		}
		if s.Fair = s.Key.Kind != core.KeyNone && l.maybe(2); s.Fair {
			s.Weights = map[string]uint32{"key 1": 3}
		}
		s.Ordered = s.Key.Kind == core.KeyTag && !s.Fair && l.maybe(2)
		return &core.ShareQueue{Sharing: s}
	}
	t := core.Throttle{
		Leased: uint32(l.rng.IntN(4)), LeasedPerWorker: uint32(l.rng.IntN(3)),
		SlotFor: l.span() * time.Duration(l.rng.IntN(2)),
	}
	if l.maybe(3) {
		t.Rate, t.Burst = float64(1+l.rng.IntN(3)), uint32(l.rng.IntN(3))
	}
	return &core.PutLimit{Limit: core.Limit{
		Selector: core.InQueue(q, scope, name), Throttle: t, FromConfig: fromConfig,
	}}
}
