package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/table"
)

// Policy is a policy and its origin.
type Policy struct {
	core.JobPolicy
	fromConfig bool
	stored     bool // it has a meta entry
}

// Policies are all policies of both scopes. Not safe for concurrent use.
type Policies struct {
	table   *table.Table
	all     [core.PolicyOfType + 1]map[string]*Policy // by name
	count   int                                       // of both scopes
	changed func(queue string, p *Policy)
}

// New returns empty Policies. changed is called when the policy of a queue is replaced, or removed (nil).
func New(t *table.Table, changed func(queue string, p *Policy)) *Policies {
	return &Policies{table: t, changed: changed, all: [core.PolicyOfType + 1]map[string]*Policy{{}, {}}}
}

// metaNames are the prefixes of the names of the meta entries. They are on disk and never change.
var metaNames = [...]string{core.PolicyOfQueue: Prefix + "queue/", core.PolicyOfType: Prefix + "type/"}

// Prefix is the prefix of the names of all meta entries of policies.
const Prefix = "core/policy/"

// None reports whether there are no policies at all.
func (x *Policies) None() bool { return x.count == 0 }

// OfQueue returns the policy of a queue, or nil.
func (x *Policies) OfQueue(name string) *Policy { return x.all[core.PolicyOfQueue][name] }

// For returns the policy that sets a member: the policy of the type, otherwise that of the queue; nil: neither sets
// it.
func (x *Policies) For(typ string, queue *Policy, member core.PolicyFields) *core.JobPolicy {
	types := x.all[core.PolicyOfType]
	if queue == nil && len(types) == 0 {
		return nil
	}
	for _, p := range [...]*Policy{types[typ], queue} {
		if p != nil && p.Has&member != 0 {
			return &p.JobPolicy
		}
	}
	return nil
}

// Unstored reports whether a policy keeps jobs of a type in memory while they are in a queue.
func (x *Policies) Unstored(queue, typ string) bool {
	if x.None() {
		return false
	}
	p := x.For(typ, x.OfQueue(queue), core.PolicyDurability)
	return p != nil && p.Unstored
}

// ApplyTo sets the expiry and the retention of a new job from its policies.
func (x *Policies) ApplyTo(j *core.Job) {
	if x.None() || j.Ephemeral {
		return
	}
	typ, queue := cmp.Or(j.Type, j.Queue), x.OfQueue(j.Queue)
	if p := x.For(typ, queue, core.PolicyExpiresIn); p != nil && j.ExpiresAt == 0 && j.Own&core.PolicyExpiresIn == 0 {
		j.ExpiresAt = max(x.table.Now, j.ReadyAt).Add(p.ExpiresIn)
	}
	if p := x.For(typ, queue, core.PolicyRetainFor); p != nil && !j.Kept() && j.Own&core.PolicyRetainFor == 0 {
		j.RetainFor = p.RetainFor
	}
}

// Put sets or removes members of a policy, and returns the commit that the reply depends on.
func (x *Policies) Put(op *core.PutPolicy) (core.Commit, error) {
	all := x.all[op.Scope]
	before := all[op.Name]
	if err := x.refusal(op, before); err != nil {
		return 0, err
	}
	p := &Policy{fromConfig: op.FromConfig}
	if before != nil {
		p.JobPolicy, p.stored = before.JobPolicy, before.stored
	}
	set := op.Set
	set.Backoff.Spans = slices.Clone(set.Backoff.Spans)
	set.MoveTo = strings.Clone(set.MoveTo)
	p.JobPolicy = p.With(&set, op.Remove)
	name := strings.Clone(op.Name)
	commit := core.Commit(0)
	if !p.fromConfig || p.stored {
		x.store(op.Scope, name, p)
		commit = x.table.Promise()
	}
	x.apply(op.Scope, name, p)
	return commit, nil
}

// refusal returns why a policy is refused, or nil.
func (x *Policies) refusal(op *core.PutPolicy, before *Policy) error {
	wrong := func(what string) error { return fmt.Errorf("%w: %s", core.ErrInvalid, what) }
	p := &op.Set
	switch {
	case op.Name == "" || len(op.Name) > core.MaxQueueName || len(p.MoveTo) > core.MaxQueueName:
		return wrong("a policy needs the name of a queue or type; names are bounded")
	case !p.Backoff.Valid():
		return wrong("a backoff has a known kind, spans of at most ten years, and jitter between 0 and 1")
	case p.Exhausted > core.ExhaustedBury:
		return wrong("unknown end of a job")
	case op.Scope == core.PolicyOfQueue && p.MoveTo == op.Name:
		return wrong("a job cannot move to the queue that it is in")
	case p.LeaseFor < 0, p.ExpiresIn < 0, p.RetainFor < 0:
		return wrong("a time is not negative")
	case before != nil && before.fromConfig && !op.FromConfig:
		return core.ErrConfigured
	case before == nil && len(x.all[op.Scope]) >= core.MaxPolicies:
		return core.ErrFull
	}
	return nil
}

// apply sets a policy; a policy without members is removed.
func (x *Policies) apply(scope core.PolicyScope, name string, p *Policy) {
	if p.Has == 0 {
		p = nil
		delete(x.all[scope], name)
	} else {
		x.all[scope][name] = p
	}
	x.count = len(x.all[core.PolicyOfQueue]) + len(x.all[core.PolicyOfType])
	if scope == core.PolicyOfQueue {
		x.changed(name, p)
	}
}

// store stores a policy with the open batch, or removes it from the store.
func (x *Policies) store(scope core.PolicyScope, name string, p *Policy) {
	entry := core.MetaEntry{Name: metaNames[scope] + name}
	if p.stored = !p.fromConfig && p.Has != 0; p.stored {
		entry.Value = table.Encode(p.JobPolicy)
	}
	x.table.LogMeta(entry)
}

// Restore restores a policy.
func (x *Policies) Restore(name string, value []byte) error {
	for scope, prefix := range metaNames {
		of, is := strings.CutPrefix(name, prefix)
		if !is || of == "" {
			continue
		}
		p := &Policy{stored: true}
		if err := json.Unmarshal(value, &p.JobPolicy); err != nil {
			return err
		}
		if !p.Backoff.Valid() {
			return errors.New("a policy with an unknown backoff")
		}
		x.apply(core.PolicyScope(scope), of, p)
		return nil
	}
	return errors.New("a policy of nothing")
}

// List lists policies of a scope by name.
func (x *Policies) List(op *core.ListPolicies) []core.PolicyInfo {
	rows := []core.PolicyInfo{}
	if op.Scope <= core.PolicyOfType {
		all := x.all[op.Scope]
		names := []string{op.Name}
		if op.Name == "" {
			names = slices.Sorted(maps.Keys(all))
		}
		for _, name := range names {
			p := all[name]
			if p == nil || name <= op.After {
				continue
			}
			if op.Limit > 0 && len(rows) == op.Limit {
				break
			}
			row := core.PolicyInfo{Scope: op.Scope, Name: name, JobPolicy: p.JobPolicy, FromConfig: p.fromConfig}
			row.Backoff.Spans = slices.Clone(row.Backoff.Spans)
			rows = append(rows, row)
		}
	}
	return rows
}
