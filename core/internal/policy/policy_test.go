package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/table/tabletest"
)

// fixture has the policies of a table, and the queues whose policies were replaced.
type fixture struct {
	*testing.T
	table    *tabletest.Table
	policies *Policies
	changed  []string
}

func setup(t *testing.T) *fixture {
	f := &fixture{T: t, table: tabletest.New()}
	f.policies = New(f.table.Table,
		func(queue string, p *Policy) { f.changed = append(f.changed, fmt.Sprintf("%s %v", queue, p != nil)) })
	return f
}

func (f *fixture) put(op core.PutPolicy) {
	f.Helper()
	if _, err := f.policies.Put(&op); err != nil {
		f.Fatal(err)
	}
}

func TestPolicyOfTypeComesBeforeThatOfQueue(t *testing.T) {
	t.Parallel()
	f := setup(t)
	lease := func(d time.Duration) core.JobPolicy {
		return core.JobPolicy{Has: core.PolicyLeaseFor, LeaseFor: d}
	}
	f.put(core.PutPolicy{Name: "q", Set: lease(time.Minute)})
	f.put(core.PutPolicy{Scope: core.PolicyOfType, Name: "T", Set: lease(time.Hour)})
	f.put(core.PutPolicy{
		Scope: core.PolicyOfType, Name: "U", Set: core.JobPolicy{Has: core.PolicyMaxFails, MaxFails: 3},
	})
	for _, test := range []struct {
		typ, queue string
		want       time.Duration
	}{
		{"T", "q", time.Hour},
		{"T", "other", time.Hour},
		{"other", "q", time.Minute},
		{"U", "q", time.Minute},
		{"U", "other", 0},
		{"other", "other", 0},
	} {
		have := time.Duration(0)
		if p := f.policies.For(test.typ, f.policies.OfQueue(test.queue), core.PolicyLeaseFor); p != nil {
			have = p.LeaseFor
		}
		if have != test.want {
			t.Errorf("type %s in queue %s: %v, want %v", test.typ, test.queue, have, test.want)
		}
	}
	if !slices.Equal(f.changed, []string{"q true"}) {
		t.Errorf("told of %v", f.changed)
	}
}

func TestPolicyFillsFieldsThatJobsOmit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(core.PutPolicy{Name: "q", Set: core.JobPolicy{
		Has: core.PolicyExpiresIn | core.PolicyRetainFor, ExpiresIn: time.Hour, RetainFor: time.Minute,
	}})
	now := f.table.Now
	for _, test := range []struct {
		name    string
		job     core.Job
		expires core.Instant
		retain  time.Duration
	}{
		{name: "says nothing", job: core.Job{Queue: "q"}, expires: now.Add(time.Hour), retain: time.Minute},
		{
			name: "is due later", job: core.Job{Queue: "q", ReadyAt: now.Add(time.Hour)},
			expires: now.Add(2 * time.Hour), retain: time.Minute,
		},
		{name: "says both", job: core.Job{
			Queue: "q", ExpiresAt: now.Add(1), RetainFor: 2,
		}, expires: now.Add(1), retain: 2},
		{name: "is ephemeral", job: core.Job{Queue: "q", Ephemeral: true}},
		{name: "is elsewhere", job: core.Job{Queue: "other"}},
	} {
		if f.policies.ApplyTo(&test.job); test.job.ExpiresAt != test.expires || test.job.RetainFor != test.retain {
			t.Errorf("a job that %s expires at %v and is kept for %v", test.name, test.job.ExpiresAt,
				test.job.RetainFor)
		}
	}
}

func TestMembersAreSetAndRemovedOneByOne(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(core.PutPolicy{
		Name: "q",
		Set:  core.JobPolicy{Has: core.PolicyMaxFails | core.PolicyLeaseFor, MaxFails: 3, LeaseFor: time.Minute},
	})
	f.put(core.PutPolicy{
		Name: "q", Set: core.JobPolicy{Has: core.PolicyMaxFails, MaxFails: 5}, Remove: core.PolicyLeaseFor,
	})
	if all := f.policies.List(&core.ListPolicies{}); len(all) != 1 || all[0].Has != core.PolicyMaxFails ||
		all[0].MaxFails != 5 {
		t.Errorf("the policy is %+v", all)
	}
	f.put(core.PutPolicy{Name: "q", Remove: core.AllPolicyFields})
	if all := f.policies.List(&core.ListPolicies{}); len(all) != 0 || !f.policies.None() {
		t.Errorf("a policy without members stays: %+v", all)
	}
	if meta := f.table.Meta(); len(meta) != 1 || meta[Prefix+"queue/q"] != nil {
		t.Errorf("the store keeps %q", meta)
	}
}

func TestPoliciesOfSettingsAreNotStored(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(core.PutPolicy{Name: "q", FromConfig: true, Set: core.JobPolicy{Has: core.PolicyMaxFails, MaxFails: 3}})
	if meta := f.table.Meta(); len(meta) != 0 {
		t.Errorf("the store gets %q", meta)
	}
	_, err := f.policies.Put(&core.PutPolicy{Name: "q", Set: core.JobPolicy{Has: core.PolicyMaxFails, MaxFails: 4}})
	if !errors.Is(err, core.ErrConfigured) {
		t.Errorf("a policy of the settings is replaced: %v", err)
	}
}

func TestInvalidPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for name, op := range map[string]core.PutPolicy{
		"no name":         {},
		"long name":       {Name: strings.Repeat("x", core.MaxQueueName+1)},
		"unknown end":     {Name: "q", Set: core.JobPolicy{Exhausted: core.ExhaustedBury + 1}},
		"move to itself":  {Name: "q", Set: core.JobPolicy{MoveTo: "q"}},
		"negative lease":  {Name: "q", Set: core.JobPolicy{LeaseFor: -1}},
		"negative expiry": {Name: "q", Set: core.JobPolicy{ExpiresIn: -1}},
	} {
		if _, err := f.policies.Put(&op); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range core.MaxPolicies {
		f.put(core.PutPolicy{Name: fmt.Sprint(i), Set: core.JobPolicy{Has: core.PolicyMaxFails, MaxFails: 1}})
	}
	if _, err := f.policies.Put(&core.PutPolicy{Name: "one more"}); !errors.Is(err, core.ErrFull) {
		t.Errorf("one policy more: %v", err)
	}
}

func TestPoliciesAreListedByNameInPages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, name := range []string{"c", "a", "b"} {
		f.put(core.PutPolicy{
			Scope: core.PolicyOfType, Name: name, Set: core.JobPolicy{Has: core.PolicyMaxFails, MaxFails: 1},
		})
	}
	var have []string
	for _, page := range [][]core.PolicyInfo{
		f.policies.List(&core.ListPolicies{Scope: core.PolicyOfType, Limit: 2}),
		f.policies.List(&core.ListPolicies{Scope: core.PolicyOfType, Limit: 2, After: "b"}),
		f.policies.List(&core.ListPolicies{Scope: core.PolicyOfType, Name: "b"}),
		f.policies.List(&core.ListPolicies{Scope: core.PolicyOfType + 1}),
	} {
		for _, row := range page {
			have = append(have, row.Name)
		}
		have = append(have, "|")
	}
	if text := strings.Join(have, ""); text != "ab|c|b||" {
		t.Errorf("pages: %s", text)
	}
}

// FuzzPolicyIsRestored restores any stored value: an accepted policy applies, and is the same once it is stored and
// restored again.
func FuzzPolicyIsRestored(f *testing.F) {
	f.Add("queue/q", []byte(`{"Has":255,"MaxAttempts":3,"MaxFails":2,"LeaseFor":60000000000,"Unstored":true}`))
	f.Add("type/T", []byte(`{"Has":4,"Backoff":{"Spans":[1,2]}}`))
	f.Add("queue/", []byte(`{}`))
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		x := setup(t)
		if x.policies.Restore(Prefix+name, value) != nil {
			return
		}
		list := func(p *Policies) string {
			return fmt.Sprintf("%+v",
				append(p.List(&core.ListPolicies{}), p.List(&core.ListPolicies{Scope: core.PolicyOfType})...))
		}
		y := setup(t)
		for scope := range core.PolicyOfType + 1 {
			for of, p := range x.policies.all[scope] {
				x.policies.store(scope, of, p)
			}
		}
		meta := x.table.Meta()
		for _, name := range slices.Sorted(maps.Keys(meta)) {
			if err := y.policies.Restore(name, meta[name]); err != nil {
				t.Fatalf("%s is stored as %s: %v", value, meta[name], err)
			}
		}
		if have, want := list(y.policies), list(x.policies); have != want {
			t.Errorf("%s is restored as %s, and then as %s", value, want, have)
		}
	})
}
