package machine_test

import (
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/limit"
	"broker/core/internal/machine"
)

// A reduced limit, or a time zone that the system no longer has, must not prevent a store from opening.
func TestStoredSchedulesOutliveTighterLimits(t *testing.T) {
	t.Parallel()
	const job = `"job":"AQABcQ=="`
	cases := []struct {
		what, name, definition string
		due                    bool // it goes on
	}{
		{"a shorter interval", "s", `{"every":1000000,` + job + `}`, true},
		{"a longer name", strings.Repeat("s", core.MaxQueueName+1), `{"every":60000000000,` + job + `}`, true},
		{"more missed runs", "s", `{"every":60000000000,"missed":2,"max_missed":5000,` + job + `}`, true},
		{
			"a larger body", "s",
			`{"every":60000000000,"body":"` + strings.Repeat("YWFh", core.MaxScheduleBytes/2) + `",` + job + `}`, true,
		},
		{"an unknown time zone", "s", `{"cron":"* * * * *","zone":"Nowhere/Lost",` + job + `}`, false},
		{"times that cannot be parsed", "s", `{"cron":"every other day",` + job + `}`, false},
	}
	for _, one := range cases {
		t.Run(one.what, func(t *testing.T) {
			t.Parallel()
			now := coretest.NewClock().Now()
			m := machine.New(machine.Options{Persist: true, Await: true, CacheBytes: 1 << 24, StartedAt: now})
			m.Begin(0)
			position := `{"at":1,"next":2,"runs":3}`
			for _, entry := range []core.MetaEntry{
				{Name: "core/schedule/" + one.name, Value: []byte(one.definition)},
				{Name: "core/schedule_position/" + one.name, Value: []byte(position)},
			} {
				if err := m.RestoreMeta(entry.Name, entry.Value); err != nil {
					t.Fatal(err)
				}
			}
			m.Restored()
			refused := m.ScheduleRuns()
			if one.due != (len(refused) == 0) {
				t.Fatalf("reports at start: %+v", refused)
			}
			for range 3 {
				now = now.Add(time.Minute)
				m.Tick(now, 1)
			}
			if runs := m.ScheduleRuns(); one.due == (len(runs) == 0) {
				t.Fatalf("runs: %+v", runs)
			}
			c := m.OpenClient(now, core.ClientOptions{Protocol: core.Internal})
			m.Apply(now, c, []core.Op{&core.ListSchedules{}, &core.RunSchedule{Name: one.name, UpTo: now}})
			if all := m.Take(c, nil)[0].Schedules; len(all) != 1 || all[0].Name != one.name {
				t.Fatalf("schedules: %+v", all)
			}
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestStoredPoliciesOutliveTighterLimits(t *testing.T) {
	t.Parallel()
	now := coretest.NewClock().Now()
	m := machine.New(machine.Options{Persist: true, Await: true, CacheBytes: 1 << 20, StartedAt: now})
	policy := `{"limits":[{"scope":1,"name":"YQ==","rate":1e12},{"scope":2,"rate":1e-12}],"key":2,"fair":true,"weights":{"a":9999999}}`
	if err := m.RestoreMeta(limit.RulesPrefix+"q", []byte(policy)); err != nil {
		t.Fatal(err)
	}
	m.Begin(0)
	m.Restored()
	c := m.OpenClient(now, core.ClientOptions{Protocol: core.Internal})
	m.Apply(now, c, []core.Op{&core.ListLimits{Queue: "q"}})
	r := m.Take(c, nil)[0]
	if len(r.Limits) != 2 || r.Limits[0].Rate != core.MaxRate || r.Limits[1].Rate != core.MinRate ||
		r.Sharings[0].Weights["a"] != core.MaxWeight {
		t.Fatalf("limits %+v, sharings %+v", r.Limits, r.Sharings)
	}
}
