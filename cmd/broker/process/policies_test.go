package process

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"broker/config"
	"broker/core"
)

func TestPoliciesFollowTheConfiguration(t *testing.T) {
	t.Parallel()
	p, log := newTerm(t)
	want := func(want ...string) {
		t.Helper()
		var got []string
		for _, scope := range []core.PolicyScope{core.PolicyOfQueue, core.PolicyOfType} {
			for _, row := range core.DoOnce(p.engine, core.Internal, &core.ListPolicies{Scope: scope})[0].Policies {
				got = append(got, fmt.Sprintf("%d/%s has %d: fails %d, lease %v, to %q, %v", scope, row.Name, row.Has,
					row.MaxFails, row.LeaseFor, row.MoveTo, row.FromConfig))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	core.DoOnce(p.engine, core.Internal,
		&core.PutPolicy{Name: "q", Set: core.JobPolicy{Has: core.PolicyLeaseFor, LeaseFor: 1e9}})
	first := settingsOf(t, &config.Config{
		QueuePolicies: []config.Policy{{
			Name: "q", Members: []byte(`{"max_fails": 5, "on_exhausted": {"move": "dead"}}`),
		}},
		TypePolicies: []config.Policy{{Name: "T", Members: []byte(`{"lease_for_s": 60}`)}},
	})
	p.applyPolicies(&Settings{}, first)
	want(`0/q has 10: fails 5, lease 0s, to "dead", true`, `1/T has 16: fails 0, lease 1m0s, to "", true`)
	log.Reset()
	p.applyPolicies(first, first)
	if log.Len() != 0 {
		t.Errorf("nothing has changed, log: %s", log.String())
	}
	second := settingsOf(t, &config.Config{
		QueuePolicies: []config.Policy{{Name: "q", Members: []byte(`{"max_fails": 6}`)}},
	})
	p.applyPolicies(first, second)
	want(`0/q has 2: fails 6, lease 0s, to "", true`)
	if r := core.DoOnce(p.engine, core.Internal, &core.PutPolicy{
		Name: "q", Set: core.JobPolicy{Has: core.PolicyMaxFails, MaxFails: 1},
	})[0]; r.Kind != core.Failed {
		t.Errorf("a policy of the file was changed at run time: %+v", r)
	}
	p.applyPolicies(second, &Settings{})
	want()
}
