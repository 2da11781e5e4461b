package process

import (
	"cmp"
	"fmt"

	"broker/config"
	"broker/core"
	"broker/core/schema"
)

// policyName identifies a policy of the configuration.
type policyName struct {
	scope core.PolicyScope
	name  string
}

// policiesOf returns the policies in the settings, and their errors.
func policiesOf(c *config.Config) (map[policyName]core.JobPolicy, []config.Problem) {
	all := make(map[policyName]core.JobPolicy)
	var problems []config.Problem
	for scope, list := range [...]struct {
		name string
		rows []config.Policy
	}{
		core.PolicyOfQueue: {config.QueuePolicy, c.QueuePolicies},
		core.PolicyOfType:  {config.TypePolicy, c.TypePolicies},
	} {
		scope := core.PolicyScope(scope)
		for i, row := range list.rows {
			at := fmt.Sprintf("%s[%d]", list.name, i)
			set, _, err := schema.ParsePolicy(at, row.Members)
			if err == nil {
				err = schema.CheckPolicy(at, scope, row.Name, &set)
			}
			if field, detail, ok := schema.FieldOf(err); ok {
				problems = append(problems, config.Problem{Setting: field, Text: detail})
				continue
			}
			all[policyName{scope, row.Name}] = set
		}
	}
	return all, problems
}

// applyPolicies sets the policies that have changed.
func (t *term) applyPolicies(old, fresh *Settings) {
	reconcile(old.policies, fresh.policies, policyName.compare, func(n policyName, set core.JobPolicy, wanted bool) {
		op := &core.PutPolicy{
			Scope: n.scope, Name: n.name, Set: set, Remove: core.AllPolicyFields, FromConfig: true,
		}
		if r := core.DoOnce(t.engine, core.Internal, op)[0]; r.Err != nil {
			t.log.Error().Err(r.Err).Str("of", n.name).Msg("policy refused")
			return
		}
		line := t.log.Info().Str([...]string{core.PolicyOfQueue: "queue", core.PolicyOfType: "type"}[n.scope], n.name)
		if wanted {
			line.Msg("policy set")
		} else {
			line.Msg("policy removed")
		}
	})
}

func (n policyName) compare(to policyName) int {
	return cmp.Or(cmp.Compare(n.scope, to.scope), cmp.Compare(n.name, to.name))
}
