package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/schema"
	"broker/core/shellword"
)

// Limit limits the leases of a queue, of each type or key in a queue, or of several queues and types together.
type Limit struct {
	Queue  string   `json:"queue,omitempty" doc:"unless it is for several"`
	Scope  string   `json:"scope" enum:"queue,type,key,shared" doc:"all jobs of the queue, the jobs of a type, or the jobs with a key; shared: one limit for several queues and types"`
	Name   string   `json:"name,omitempty" doc:"the type or key; none: each one without its own limit; of a shared limit: its name"`
	Queues []string `json:"queues,omitempty" doc:"shared: all jobs of these queues"`
	Types  []string `json:"types,omitempty" doc:"shared: and all jobs of these types, in any queue"`
	schema.Throttle
	FromConfig bool `json:"from_config" doc:"it comes from the configuration, and can only be changed there"`

	Uses []LimitUse `json:"uses,omitempty" doc:"for one queue: the use of the limit"`
}

// LimitUse is the use of the limit of one queue, type or key.
type LimitUse struct {
	Name   string     `json:"name,omitempty" doc:"the type or key"`
	Taken  uint32     `json:"taken" doc:"slots: the costs of the leased jobs"`
	Ready  int        `json:"ready" doc:"ready jobs that only limits keep from being leased"`
	NextAt *time.Time `json:"next_at,omitempty" doc:"when the rate allows the next lease; none: now"`
	Slots  []Slot     `json:"slots" doc:"the oldest lease first, at most 1,000"`
}

// Slot is a leased job that counts against a limit.
type Slot struct {
	Job      string     `json:"job" doc:"seq:N"`
	Worker   string     `json:"worker,omitempty" doc:"id of the worker, or name of the connection"`
	LeasedAt *time.Time `json:"leased_at"`
}

// LimitSpec is a limit in the form for clients.
type LimitSpec struct {
	Queue  string   `json:"queue,omitempty" maxLength:"512" doc:"the queue; or name with queues and types"`
	Scope  string   `json:"scope,omitempty" enum:"queue,type,key,shared" doc:"default: queue, or shared with queues or types"`
	Name   string   `json:"name,omitempty" doc:"the type or key; none: each one without its own limit; with queues or types: the name of the limit"`
	Queues []string `json:"queues,omitempty" doc:"one limit for all jobs of these queues"`
	Types  []string `json:"types,omitempty" doc:"and for all jobs of these types, in any queue"`
	schema.Throttle
}

var limitScopes = [...]string{core.ScopeQueue: "queue", core.ScopeType: "type", core.ScopeKey: "key"}

// Sharing defines how the keys of a queue share its workers.
type Sharing struct {
	Mode      string            `json:"mode,omitempty" enum:"fair,ordered,none" doc:"fair: keys take turns; ordered: a job is handed out when all earlier jobs of its key have ended, or together with them; none: keys are for limits only"`
	KeyTag    string            `json:"key_tag,omitempty" doc:"the key of a job is the rest of its first tag that starts with this name and a colon"`
	KeyUnique bool              `json:"key_unique,omitempty" doc:"the key of a job is its unique key up to the first colon"`
	Fair      bool              `json:"fair" required:"false" doc:"the mode is fair: keys take turns"`
	Weights   map[string]uint32 `json:"weights,omitempty" doc:"turns of a key; default 1"`

	FromConfig bool `json:"from_config,omitempty" readOnly:"true" doc:"it comes from the configuration, and can only be changed there"`
}

// Modes of a Sharing.
const (
	SharingFair    = "fair"
	SharingOrdered = "ordered"
	SharingNone    = "none"
)

func sharingOf(s *core.Sharing) *Sharing {
	v := &Sharing{
		Mode: SharingNone, KeyTag: text(s.Key.Tag), KeyUnique: s.Key.Kind == core.KeyUnique, Fair: s.Fair,
		FromConfig: s.FromConfig,
	}
	switch {
	case s.Fair:
		v.Mode = SharingFair
	case s.Ordered:
		v.Mode = SharingOrdered
	}
	if len(s.Weights) > 0 {
		v.Weights = make(map[string]uint32, len(s.Weights))
		for key, turns := range s.Weights {
			v.Weights[text(key)] = turns
		}
	}
	return v
}

func limitOf(l *core.LimitInfo) Limit {
	v := Limit{
		Scope: limitScopes[l.Scope], Throttle: schema.ThrottleOf(&l.Throttle), FromConfig: l.FromConfig,
	}
	if l.IsShared() {
		v.Scope, v.Name, v.Queues, v.Types = sharedScope, text(l.Name), texts(l.Queues), texts(l.Types)
	} else {
		v.Queue, v.Name = text(l.Queues[0]), text(l.Of)
	}
	for _, u := range l.Uses {
		use := LimitUse{
			Name: text(u.Name), Taken: u.Taken, Ready: u.Ready, NextAt: timeOf(u.NextAt),
			Slots: make([]Slot, len(u.Slots)),
		}
		for i, slot := range u.Slots {
			use.Slots[i] = Slot{Job: seqName(slot.Seq), Worker: text(slot.Worker), LeasedAt: timeOf(slot.LeasedAt)}
		}
		v.Uses = append(v.Uses, use)
	}
	return v
}

// Limits lists the limits that the caller may read: of one queue with their use, or of all queues. Shared limits come
// last.
func (s *Service) Limits(ctx context.Context, caller Caller, queue string) ([]Limit, error) {
	if queue != "" {
		if err := caller.may(access.Read, queue); err != nil {
			return nil, err
		}
	}
	c := s.open(caller)
	defer c.Close()
	limits := []Limit{}
	for op := (core.ListLimits{Queue: queue}); ; {
		r, err := c.call(ctx, &op)
		if err != nil {
			return nil, err
		}
		for i := range r.Limits {
			if l := &r.Limits[i]; !l.IsShared() && caller.mayLimit(access.Read, &l.Limit) == nil {
				limits = append(limits, limitOf(l))
			}
		}
		if op.After = r.NextLimit; op.After == (core.LimitID{}) {
			shared, err := s.sharedLimitsOf(ctx, caller, queue)
			return append(limits, shared...), errors.Join(err, context.Cause(ctx))
		}
	}
}

// limitCursor is a position in a list of limits: after this many limits of a queue.
type limitCursor struct {
	Queue []byte `json:"q"`
	Skip  int    `json:"n"`
}

// LimitPage lists a page of the limits that the caller may read, with their use. The cursor is empty on the last page.
func (s *Service) LimitPage(
	ctx context.Context, caller Caller, limit int, cursor string,
) (page []Limit, next string, err error) {
	var at limitCursor
	if err := decodeCursor(cursor, &at); err != nil {
		return nil, "", err
	}
	c := s.open(caller)
	defer c.Close()
	after := core.LimitID{Queue: string(at.Queue)}
	var queues []string
	if after.Queue != "" && caller.may(access.Read, after.Queue) == nil {
		queues = []string{after.Queue}
	}
	for isLast := false; ; {
		for _, queue := range queues {
			r, err := c.call(ctx, &core.ListLimits{Queue: queue})
			if err != nil {
				return nil, "", err
			}
			skip := 0
			if queue == string(at.Queue) {
				skip = min(max(at.Skip, 0), len(r.Limits))
			}
			for i := range r.Limits[skip:] {
				if len(page) == limit {
					return page, encodeCursor(limitCursor{[]byte(queue), skip + i}), nil
				}
				page = append(page, limitOf(&r.Limits[skip+i]))
			}
		}
		if isLast {
			return page, "", nil
		}
		if queues, after, err = s.limitedQueues(ctx, c, after, limit); err != nil {
			return page, "", err
		}
		isLast = after == (core.LimitID{})
	}
}

// limitedQueues returns the queues with limits on the page after after that the caller may read. next is where the next
// page begins; zero: this was the last one.
func (s *Service) limitedQueues(
	ctx context.Context, c *session, after core.LimitID, n int,
) (queues []string, next core.LimitID, err error) {
	r, err := c.call(ctx, &core.ListLimits{After: after, Limit: n})
	if err != nil {
		return nil, next, err
	}
	for i := range r.Limits {
		if r.Limits[i].IsShared() {
			continue
		}
		queue := r.Limits[i].Queues[0]
		if (len(queues) == 0 || queues[len(queues)-1] != queue) && c.caller.may(access.Read, queue) == nil {
			queues = append(queues, queue)
		}
	}
	return queues, r.NextLimit, nil
}

// PutLimit sets a limit.
func (s *Service) PutLimit(ctx context.Context, caller Caller, spec LimitSpec) ([]Limit, error) {
	l, err := spec.core()
	if err != nil {
		return nil, err
	}
	if l.Scope == core.ScopeKey {
		if err := s.keyRefusal(ctx, caller, spec.Queue); err != nil {
			return nil, err
		}
	}
	if err := caller.mayLimit(access.Operate, &l); err != nil {
		return nil, err
	}
	if err := s.changeLimit(ctx, caller, l.ID(), "limit.set", &core.PutLimit{Limit: l}); err != nil {
		return nil, err
	}
	if l.IsShared() {
		return s.SharedLimits(ctx, caller, l.Name)
	}
	return s.Limits(ctx, caller, spec.Queue)
}

// core checks the form of a limit and converts it for the core, which checks the rest.
func (spec *LimitSpec) core() (l core.Limit, err error) {
	if err := asInvalid(schema.CheckThrottle("", &spec.Throttle)); err != nil {
		return l, err
	}
	l.Throttle = spec.Throttle.Core()
	if spec.Scope == sharedScope || len(spec.Queues)+len(spec.Types) > 0 {
		l.Name, l.Selector = spec.Name, core.Selector{Queues: spec.Queues, Types: spec.Types}
		switch {
		case spec.Queue != "":
			err = invalid("queue", "queue and queues exclude each other")
		case spec.Scope != "" && spec.Scope != sharedScope:
			err = invalid("scope", "a limit with queues or types is shared")
		case spec.Name == "":
			err = invalid("name", "a limit of queues and types needs a name")
		case spec.PerWorker != 0 || spec.SlotForS != 0:
			err = invalid("", "per_worker and slot_for_s are for limits of one queue")
		}
		return l, err
	}
	if spec.Queue == "" {
		return l, invalid("queue", "a limit is for a queue, or has a name with queues or types")
	}
	scope, err := limitScope(spec.Scope)
	if err != nil {
		return l, err
	}
	l.Selector = core.InQueue(spec.Queue, scope, spec.Name)
	return l, nil
}

// keyRefusal refuses a limit of keys for a queue whose jobs have no key, where it would have no effect. It offers a
// tag that jobs of the queue have.
func (s *Service) keyRefusal(ctx context.Context, caller Caller, queue string) error {
	if err := caller.may(access.Operate, queue); err != nil {
		return err
	}
	c := s.open(caller)
	defer c.Close()
	if s.sharing(c, queue) != nil {
		return nil
	}
	name := "tenant"
	r, err := c.call(ctx, &core.Find{Filter: core.Filter{Queues: []string{queue}}, Limit: taggedLook, Brief: true})
	if err != nil {
		return err
	}
	for i := range r.Jobs {
		for _, tag := range r.Jobs[i].Tags {
			if before, _, named := strings.Cut(tag, ":"); named && before != "" {
				name = text(before)
				break
			}
		}
	}
	return invalid("scope", "jobs of the queue %s have no key, so the limit would have no effect; set the key with "+
		"sharing.key_tag, for example: broker limits share %s --mode none --key-tag %s",
		text(queue), shellword.Quote(text(queue)), shellword.Quote(name))
}

// taggedLook is the number of jobs whose tags are read for an offer.
const taggedLook = 20

// RemoveLimit removes a limit of a queue. Without a queue, or with the scope shared, it removes the shared limit with
// this name.
func (s *Service) RemoveLimit(ctx context.Context, caller Caller, queue, scopeName, name string) error {
	id := core.LimitID{Name: name}
	switch {
	case queue == "" && name != "" || scopeName == sharedScope:
	case queue == "":
		return invalid("queue", "queue is missing, or the name of a limit for several queues")
	default:
		scope, err := limitScope(scopeName)
		if err != nil {
			return err
		}
		id = core.LimitID{Queue: queue, Scope: scope, Of: name}
	}
	return s.changeLimit(ctx, caller, id, "limit.remove", &core.RemoveLimit{ID: id})
}

// ShareQueue sets how the keys of a queue share its workers. A Sharing without a key removes that, unless the queue has
// limits of keys, which would lose their effect.
func (s *Service) ShareQueue(ctx context.Context, caller Caller, queue string, v Sharing) error {
	sharing, err := v.core(queue)
	if err != nil {
		return err
	}
	if sharing.Key.Kind == core.KeyNone {
		limits, err := s.Limits(ctx, caller, queue)
		if err != nil {
			return err
		}
		byKey := func(l Limit) bool { return l.Scope == limitScopes[core.ScopeKey] }
		if slices.ContainsFunc(limits, byKey) {
			return invalid("sharing", "the queue has limits of keys, which would have no effect: remove them first")
		}
	}
	return s.changeRules(ctx, caller, queue, "queue.share", &core.ShareQueue{Sharing: sharing})
}

// core checks a Sharing and converts it for the core.
func (v *Sharing) core(queue string) (core.Sharing, error) {
	sharing := core.Sharing{
		Queue: queue, Fair: v.Fair || v.Mode == SharingFair, Ordered: v.Mode == SharingOrdered, Weights: v.Weights,
	}
	switch {
	case v.Fair && v.Mode != "" && v.Mode != SharingFair:
		return sharing, invalid("sharing.mode", "fair is another mode")
	case sharing.Ordered && v.KeyTag == "":
		return sharing, invalid("sharing.key_tag", "ordered needs the tag that has the key")
	case v.KeyTag != "" && v.KeyUnique:
		return sharing, invalid("sharing", "key_tag and key_unique exclude each other")
	case v.KeyTag != "":
		sharing.Key = core.JobKey{Kind: core.KeyTag, Tag: v.KeyTag}
	case v.KeyUnique:
		sharing.Key = core.JobKey{Kind: core.KeyUnique}
	}
	if err := sharing.Check(); err != nil {
		return sharing, invalid("sharing", "%v", refusal(err))
	}
	return sharing, nil
}

// changeRules changes a limit or the sharing of a queue.
func (s *Service) changeRules(ctx context.Context, caller Caller, queue, action string, op core.Op) error {
	if err := caller.may(access.Operate, queue); err != nil {
		return err
	}
	c := s.open(caller)
	defer c.Close()
	err := s.audited(ctx, c, AuditEntry{Action: action, Target: queue}, op)
	if IsCode(err, CodeState) {
		return invalid("", "%v", err)
	}
	return err
}

// changeLimit changes a limit. If there is a shared limit of that name, the caller needs the right for it.
func (s *Service) changeLimit(ctx context.Context, caller Caller, id core.LimitID, action string, op core.Op) error {
	if id.Name == "" {
		return s.changeRules(ctx, caller, id.Queue, action, op)
	}
	if err := caller.maySome(access.Operate); err != nil {
		return err
	}
	c := s.open(caller)
	defer c.Close()
	r, err := c.call(ctx, &core.ListLimits{Name: id.Name})
	if err != nil {
		return err
	}
	for i := range r.Limits {
		if err := caller.mayLimit(access.Operate, &r.Limits[i].Limit); err != nil {
			return err
		}
	}
	err = s.audited(ctx, c, AuditEntry{Action: action, Target: id.Name}, op)
	switch {
	case IsCode(err, CodeState):
		return invalid("", "%v", err)
	case IsCode(err, CodeQueueFull):
		return &Error{Code: CodeTooMany, Detail: "there are as many shared limits as are possible"}
	}
	return err
}

func limitScope(name string) (core.LimitScope, error) {
	for scope, known := range limitScopes {
		if known == name || name == "" {
			return core.LimitScope(scope), nil
		}
	}
	return 0, invalid("scope", "scope must be queue, type or key")
}
