package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"broker/core"
	"broker/core/policytext"
	"broker/frontends/access"
)

// policy shows the policy of a queue or type; nil: there is none.
func (s *Service) policy(ctx context.Context, c *client, scope core.PolicyScope, name string) (*policytext.Policy, error) {
	r, err := c.call(ctx, &core.ListPolicies{Scope: scope, Name: name})
	if err != nil || len(r.Policies) == 0 {
		return nil, err
	}
	return policytext.Show(&r.Policies[0]), nil
}

// Type is a type of jobs and what is set for it.
type Type struct {
	Name   string             `json:"name"`
	Policy *policytext.Policy `json:"policy,omitempty" doc:"what applies to its jobs that do not say it themselves, before the policy of their queue"`
}

// TypeChange changes what is set for a type; what is absent stays.
type TypeChange struct {
	Policy json.RawMessage `json:"policy,omitempty" doc:"members to change; null removes a member"`
}

// ShowType shows what is set for a type. Types belong to no queue, so that a caller needs the right for all.
func (s *Service) ShowType(ctx context.Context, caller Caller, name string) (Type, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return Type{}, err
	}
	c := s.open(caller, caller.Name())
	defer c.close()
	p, err := s.policy(ctx, c, core.PolicyOfType, name)
	return Type{Name: text(name), Policy: p}, err
}

// ChangeType changes what is set for a type.
func (s *Service) ChangeType(ctx context.Context, caller Caller, name string, change TypeChange) (Type, error) {
	if change.Policy != nil {
		if err := s.putPolicy(ctx, caller, core.PolicyOfType, name, change.Policy); err != nil {
			return Type{}, err
		}
	}
	return s.ShowType(ctx, caller, name)
}

// putPolicy changes the policy of a queue or type. Who sends jobs to another queue needs the right for that too.
func (s *Service) putPolicy(ctx context.Context, caller Caller, scope core.PolicyScope, name string, body json.RawMessage) error {
	action, may := "queue.policy", caller.may(access.Operate, name)
	if scope == core.PolicyOfType {
		action, may = "type.policy", caller.mayAll(access.Operate)
	}
	if may != nil {
		return may
	}
	set, remove, err := policytext.Parse("body.policy", body)
	if wrong := (*policytext.Error)(nil); errors.As(err, &wrong) {
		return invalid(wrong.Field, "%s", wrong.Detail)
	}
	if set.MoveTo != "" {
		if err := caller.may(access.Operate, set.MoveTo); err != nil {
			return err
		}
		if len(set.MoveTo) > core.MaxQueueName || scope == core.PolicyOfQueue && set.MoveTo == name {
			return invalid("body.policy.on_exhausted", "on_exhausted.move must name another queue, with at most %d bytes", core.MaxQueueName)
		}
	}
	c := s.open(caller, caller.Name())
	defer c.close()
	err = s.audited(ctx, c, caller, AuditEntry{Action: action, Target: name}, &core.PutPolicy{Scope: scope, Name: name, Set: set, Remove: remove})
	switch {
	case IsCode(err, CodeState):
		return invalid("body.policy", "%v", err)
	case IsCode(err, CodeQueueFull):
		return &Error{Code: CodeTooMany, Detail: fmt.Sprintf("there are %d policies, and no more are possible", core.MaxPolicies)}
	}
	return err
}
