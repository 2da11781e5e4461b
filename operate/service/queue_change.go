package service

import (
	"context"
	"encoding/json"

	"broker/access"
	"broker/core"
)

// QueueChange changes settings of a queue. Nil members do not change.
type QueueChange struct {
	Paused *bool           `json:"paused,omitempty" doc:"no worker of any protocol gets a job"`
	Max    *QueueMaxChange `json:"max,omitempty" doc:"refuse submissions above this number of unfinished jobs, by priority class"`

	Throttle *ThrottleChange `json:"throttle,omitempty" doc:"limits of the queue's leases; all zero: no limit"`
	Sharing  *Sharing        `json:"sharing,omitempty" doc:"how the keys of the queue share its workers; without a key: keys are not used"`

	Policy json.RawMessage `json:"policy,omitempty" doc:"members of the policy to change; null removes a member; the queue need not exist"`
}

// QueueMaxChange changes a QueueMax. Nil members do not change.
type QueueMaxChange struct {
	High   *uint32 `json:"high,omitempty" maximum:"4294967295" doc:"0: no limit; absent: unchanged"`
	Normal *uint32 `json:"normal,omitempty" maximum:"4294967295" doc:"0: no limit; absent: unchanged"`
	Low    *uint32 `json:"low,omitempty" maximum:"4294967295" doc:"0: no limit; absent: unchanged"`
}

// ThrottleChange changes a Throttle. Nil members do not change.
type ThrottleChange struct {
	Concurrency *uint32  `json:"concurrency,omitempty" maximum:"4294967295" doc:"concurrent leases; 0: no limit; absent: unchanged"`
	PerWorker   *uint32  `json:"per_worker,omitempty" maximum:"4294967295" doc:"concurrent leases of one worker; 0: no limit; absent: unchanged"`
	SlotForS    *float64 `json:"slot_for_s,omitempty" doc:"a slot is free again after this time, even if the lease continues"`
	RatePerS    *float64 `json:"rate_per_s,omitempty" doc:"leases a second; 0: no limit; absent: unchanged"`
	Burst       *uint32  `json:"burst,omitempty" maximum:"4294967295" doc:"leases at once after a pause, with a rate"`
}

// ChangeQueue changes the settings of a queue.
func (s *Service) ChangeQueue(ctx context.Context, caller Caller, name string, change QueueChange) (Queue, error) {
	if err := caller.may(access.Operate, name); err != nil {
		return Queue{}, err
	}
	c := s.open(caller)
	defer c.Close()
	if change.Paused != nil || change.Max != nil || change.Throttle != nil ||
		change.Sharing == nil && change.Policy == nil {
		if _, err := c.call(ctx, &core.InspectQueue{Queue: name}); err != nil {
			return Queue{}, err
		}
	}
	if err := change.check(name); err != nil { // before anything changes
		return Queue{}, err
	}
	if change.Throttle != nil { // first, because the core checks the sum of the old and the new limits
		if err := s.throttleQueue(ctx, c, name, change.Throttle); err != nil {
			return Queue{}, err
		}
	}
	if change.Policy != nil {
		if err := s.putPolicy(ctx, caller, core.PolicyOfQueue, name, change.Policy); err != nil {
			return Queue{}, err
		}
	}
	if change.Paused != nil {
		action := map[bool]string{true: "queue.pause", false: "queue.resume"}[*change.Paused]
		op := &core.PauseQueue{Queue: name, Paused: *change.Paused}
		if err := s.audited(ctx, c, AuditEntry{Action: action, Target: name}, op); err != nil {
			return Queue{}, err
		}
	}
	if change.Max != nil {
		err := s.mergeQueue(ctx, c, AuditEntry{Action: "queue.limit", Target: name}, change.Max.op)
		if err != nil {
			return Queue{}, err
		}
	}
	if change.Sharing != nil {
		if err := s.ShareQueue(ctx, caller, name, *change.Sharing); err != nil {
			return Queue{}, err
		}
	}
	q, err := s.queue(ctx, c, name)
	// no jobs yet, and its last setting was removed
	if IsCode(err, CodeQueueNotFound) && (change.Policy != nil || change.Sharing != nil) {
		return s.queueOf(&core.QueueInfo{Name: name}), nil
	}
	return q, err
}

// check returns an error for a change with an invalid policy or sharing.
func (change *QueueChange) check(name string) error {
	if change.Policy != nil {
		if _, _, err := parsePolicy(core.PolicyOfQueue, name, change.Policy); err != nil {
			return err
		}
	}
	if change.Sharing != nil {
		_, err := change.Sharing.core(name)
		return err
	}
	return nil
}

// sharing returns the sharing of a queue, which may not exist yet; nil if there is none.
func (s *Service) sharing(c *session, name string) *core.Sharing {
	r, err := c.ask(&core.ListLimits{Queue: name})
	if err != nil || len(r.Sharings) == 0 {
		return nil
	}
	return &r.Sharings[0]
}

// throttleQueue changes the limit of a whole queue.
func (s *Service) throttleQueue(ctx context.Context, c *session, name string, change *ThrottleChange) error {
	if change.SlotForS != nil {
		if _, err := span("body.throttle.slot_for_s", *change.SlotForS); err != nil {
			return err
		}
	}
	err := s.mergeQueue(ctx, c, AuditEntry{Action: "limit.set", Target: name}, change.op)
	switch {
	case IsCode(err, CodeLimitNotFound): // there was no limit to remove
		return nil
	case IsCode(err, CodeState):
		return invalid("body.throttle", "%v", err)
	}
	return err
}

// mergeQueue applies a change that depends on the current settings of a queue. Such changes run one at a time, so that
// two concurrent changes do not undo each other. They wait for their commits concurrently.
func (s *Service) mergeQueue(
	ctx context.Context, c *session, e AuditEntry, change func(*core.QueueInfo) core.Op,
) error {
	merge := func() (core.Commit, error) {
		s.merging.Lock()
		defer s.merging.Unlock()
		r, err := c.ask(&core.InspectQueue{Queue: e.Target})
		if err != nil {
			return r.Commit, err
		}
		return s.applied(c, e, change(&r.Queues[0]))
	}
	commit, err := merge()
	return c.after(ctx, commit, err)
}

// op merges the change with the maximum length of a queue.
func (m *QueueMaxChange) op(q *core.QueueInfo) core.Op {
	most := q.Max
	set(&most.High, m.High)
	set(&most.Normal, m.Normal)
	set(&most.Low, m.Low)
	return &core.SetQueueMax{Queue: q.Name, Max: most}
}

// op merges the change with the throttle of a queue. It removes a throttle without limits.
func (t *ThrottleChange) op(q *core.QueueInfo) core.Op {
	throttle := q.Throttle
	set(&throttle.Leased, t.Concurrency)
	set(&throttle.LeasedPerWorker, t.PerWorker)
	set(&throttle.Rate, t.RatePerS)
	set(&throttle.Burst, t.Burst)
	if t.SlotForS != nil {
		throttle.SlotFor, _ = span("", *t.SlotForS) // checked by throttleQueue
	}
	if throttle == (core.Throttle{}) {
		return &core.RemoveLimit{ID: core.LimitID{Queue: q.Name}}
	}
	return &core.PutLimit{Limit: core.Limit{Selector: core.InQueue(q.Name, core.ScopeQueue, ""), Throttle: throttle}}
}

// set changes a value if a new value is given.
func set[T any](value, to *T) {
	if to != nil {
		*value = *to
	}
}

// ClearQueue removes the jobs of a queue in the given states (none: all states), and returns their number. With drop it
// also removes the settings of the queue.
func (s *Service) ClearQueue(
	ctx context.Context, caller Caller, name string, states []core.State, drop bool,
) (int, error) {
	if err := caller.may(access.Operate, name); err != nil {
		return 0, err
	}
	c := s.open(caller)
	defer c.Close()
	if _, err := c.call(ctx, &core.InspectQueue{Queue: name}); err != nil {
		return 0, err
	}
	removed := 0
	for op := (core.Purge{Queue: name, States: states, Drop: drop}); ; {
		page := op // a copy, because the broker may keep the operation
		r, err := c.call(ctx, &page)
		if err != nil {
			return removed, err
		}
		removed += r.N
		if op.Cursor = r.Cursor; op.Cursor == 0 {
			break
		}
	}
	action := map[bool]string{true: "queue.remove", false: "queue.clear"}[drop]
	commit := s.note(c, AuditEntry{Action: action, Target: name, Jobs: removed})
	return removed, c.committed(ctx, commit)
}
