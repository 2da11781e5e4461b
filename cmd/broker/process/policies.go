package process

import (
	"cmp"
	"fmt"
	"reflect"

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
func policiesOf(c *config.Config) (map[policyName]core.JobPolicy, []error) {
	all := make(map[policyName]core.JobPolicy)
	var problems []error
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
func (t *term) applyPolicies(old, fresh *config.Config) {
	before, _ := policiesOf(old)
	after, _ := policiesOf(fresh) // ReadSettings has checked them
	for _, name := range keysOf(before, after, policyName.compare) {
		set, wanted := after[name]
		if had, known := before[name]; known == wanted && reflect.DeepEqual(had, set) {
			continue
		}
		op := &core.PutPolicy{
			Scope: name.scope, Name: name.name, Set: set, Remove: core.AllPolicyFields, FromConfig: true,
		}
		if r := core.DoOnce(t.engine, core.Internal, op)[0]; r.Err != nil {
			t.log.Error().Err(r.Err).Str("of", name.name).Msg("policy refused")
			continue
		}
		done := map[bool]string{true: "policy set", false: "policy removed"}[wanted]
		t.log.Info().Str([...]string{core.PolicyOfQueue: "queue", core.PolicyOfType: "type"}[name.scope],
			name.name).Msg(done)
	}
}

func (n policyName) compare(to policyName) int {
	return cmp.Or(cmp.Compare(n.scope, to.scope), cmp.Compare(n.name, to.name))
}
