package service

import (
	"context"
	"encoding/json"

	"broker/access"
	"broker/core"
	"broker/core/schema"
)

// QueueChange changes settings of a queue. Nil members do not change.
type QueueChange struct {
	Paused *bool           `json:"paused,omitempty" doc:"no worker of any protocol gets a job"`
	Max    *QueueMaxChange `json:"max,omitempty" doc:"refuse submissions above this number of unfinished jobs, by priority class"`

	Throttle *schema.ThrottleChange `json:"throttle,omitempty" doc:"limits of the queue's leases; all zero: no limit"`
	Sharing  *Sharing               `json:"sharing,omitempty" doc:"how the keys of the queue share its workers; without a key: keys are not used"`

	Policy json.RawMessage `json:"policy,omitempty" doc:"members of the policy to change; null removes a member; the queue need not exist"`
}

// QueueMaxChange changes a QueueMax. Nil members do not change.
type QueueMaxChange struct {
	High   *uint32 `json:"high,omitempty" maximum:"4294967295" doc:"0: no limit; absent: unchanged"`
	Normal *uint32 `json:"normal,omitempty" maximum:"4294967295" doc:"0: no limit; absent: unchanged"`
	Low    *uint32 `json:"low,omitempty" maximum:"4294967295" doc:"0: no limit; absent: unchanged"`
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
	if err := change.Check(name); err != nil { // before anything changes
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
		action := pauseAction("queue", *change.Paused)
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

// Check returns an error for a change with an invalid policy or sharing.
func (change *QueueChange) Check(name string) error {
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
func (s *Service) throttleQueue(ctx context.Context, c *session, name string, change *schema.ThrottleChange) error {
	if err := asInvalid(schema.CheckThrottle("throttle", change)); err != nil {
		return err
	}
	// a throttle without limits is removed
	err := s.mergeQueue(ctx, c, AuditEntry{Action: "limit.set", Target: name}, func(q *core.QueueInfo) core.Op {
		whole := core.Limit{Selector: core.InQueue(q.Name, core.ScopeQueue, ""), Throttle: change.Over(q.Throttle)}
		if whole.Throttle == (core.Throttle{}) {
			return &core.RemoveLimit{ID: whole.ID()}
		}
		return &core.PutLimit{Limit: whole}
	})
	switch {
	case IsCode(err, CodeLimitNotFound): // there was no limit to remove
		return nil
	case IsCode(err, CodeState):
		return invalid("throttle", "%v", err)
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
	action := "queue.clear"
	if drop {
		action = "queue.remove"
	}
	commit := s.note(c, AuditEntry{Action: action, Target: name, Jobs: removed})
	return removed, c.committed(ctx, commit)
}
