package service

import (
	"context"
	"encoding/json"
	"fmt"

	"broker/access"
	"broker/core"
	"broker/core/schema"
)

// policy returns the policy of a queue or type; nil if there is none.
func (s *Service) policy(
	ctx context.Context, c *session, scope core.PolicyScope, name string,
) (*schema.Policy, error) {
	r, err := c.call(ctx, &core.ListPolicies{Scope: scope, Name: name})
	if err != nil || len(r.Policies) == 0 {
		return nil, err
	}
	return schema.ShowPolicy(&r.Policies[0]), nil
}

// NamedPolicy is a policy with its queue or type.
type NamedPolicy struct {
	Scope     string         `json:"scope" enum:"queue,type" doc:"applies to the jobs of a queue or of a type"`
	Name      string         `json:"name"`
	NameBytes []byte         `json:"name_base64,omitempty" doc:"the name if it is not UTF-8"`
	Policy    *schema.Policy `json:"policy"`
}

var policyScopes = [...]string{core.PolicyOfQueue: "queue", core.PolicyOfType: "type"}

// Policies lists the policies that the caller may read: first of queues, then of types, in the order of their names.
func (s *Service) Policies(ctx context.Context, caller Caller) ([]NamedPolicy, error) {
	c := s.open(caller)
	defer c.Close()
	all := []NamedPolicy{}
	for scope, word := range policyScopes {
		for after := ""; ; {
			r, err := c.call(ctx, &core.ListPolicies{Scope: core.PolicyScope(scope), After: after, Limit: corePage})
			if err != nil {
				return nil, err
			}
			for i := range r.Policies {
				p := &r.Policies[i]
				if p.Scope == core.PolicyOfQueue && caller.may(access.Read, p.Name) != nil ||
					p.Scope == core.PolicyOfType && caller.mayAll(access.Read) != nil {
					continue
				}
				row := NamedPolicy{Scope: word, Policy: schema.ShowPolicy(p)}
				row.Name, row.NameBytes = textOrBytes(p.Name)
				all = append(all, row)
			}
			if len(r.Policies) < corePage {
				break
			}
			after = r.Policies[corePage-1].Name
		}
	}
	return all, context.Cause(ctx)
}

// Type is a type of jobs with its settings.
type Type struct {
	Name   string         `json:"name"`
	Policy *schema.Policy `json:"policy,omitempty" doc:"defaults for its jobs, before the policy of their queue"`
}

// TypeChange changes the settings of a type. Absent members do not change.
type TypeChange struct {
	Policy json.RawMessage `json:"policy,omitempty" doc:"members to change; null removes a member"`
}

// ShowType shows the settings of a type. Types belong to no queue, so the caller needs the right for all queues.
func (s *Service) ShowType(ctx context.Context, caller Caller, name string) (Type, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return Type{}, err
	}
	c := s.open(caller)
	defer c.Close()
	p, err := s.policy(ctx, c, core.PolicyOfType, name)
	return Type{Name: text(name), Policy: p}, err
}

// ChangeType changes the settings of a type.
func (s *Service) ChangeType(ctx context.Context, caller Caller, name string, change TypeChange) (Type, error) {
	if change.Policy != nil {
		if err := s.putPolicy(ctx, caller, core.PolicyOfType, name, change.Policy); err != nil {
			return Type{}, err
		}
	}
	return s.ShowType(ctx, caller, name)
}

// putPolicy changes the policy of a queue or type. If the policy moves jobs to another queue, the caller needs the
// right for that queue too.
func (s *Service) putPolicy(
	ctx context.Context, caller Caller, scope core.PolicyScope, name string, body json.RawMessage,
) error {
	action, may := "queue.policy", caller.may(access.Operate, name)
	if scope == core.PolicyOfType {
		action, may = "type.policy", caller.mayAll(access.Operate)
	}
	if may != nil {
		return may
	}
	set, remove, err := parsePolicy(scope, name, body)
	if err != nil {
		return err
	}
	if set.MoveTo != "" {
		if err := caller.may(access.Operate, set.MoveTo); err != nil {
			return err
		}
	}
	c := s.open(caller)
	defer c.Close()
	err = s.audited(ctx, c, AuditEntry{Action: action, Target: name},
		&core.PutPolicy{Scope: scope, Name: name, Set: set, Remove: remove})
	switch {
	case IsCode(err, CodeState):
		return invalid("policy", "%v", err)
	case IsCode(err, CodeQueueFull):
		return &Error{
			Code: CodeTooMany, Detail: fmt.Sprintf("there are %d policies, and no more are possible", core.MaxPolicies),
		}
	}
	return err
}

// parsePolicy reads and checks the members of a policy.
func parsePolicy(
	scope core.PolicyScope, name string, body json.RawMessage,
) (set core.JobPolicy, remove core.PolicyFields, err error) {
	set, remove, err = schema.ParsePolicy("policy", body)
	if err == nil {
		err = schema.CheckPolicy("policy", scope, name, &set)
	}
	return set, remove, asInvalid(err)
}

// asInvalid makes an error of package schema one for clients.
func asInvalid(err error) error {
	if field, detail, ok := schema.FieldOf(err); ok {
		return invalid(field, "%s", detail)
	}
	return err
}
