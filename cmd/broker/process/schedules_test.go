package process

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/config"
	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/frontends/faktory"
)

// scheduleFixture is a broker with the schedules of a configuration.
type scheduleFixture struct {
	*testing.T
	engine *engine.Engine
	clock  *coretest.Clock
	loader scheduleLoader
	log    bytes.Buffer
}

func newScheduleFixture(t *testing.T) *scheduleFixture {
	t.Helper()
	f := &scheduleFixture{T: t, clock: coretest.NewClock()}
	f.engine = openEngine(t, f.clock)
	template := func(t *faktory.JobTemplate) (*core.Job, error) {
		if len(t.Args) == 0 {
			return nil, errors.New("empty")
		}
		return &core.Job{Queue: "q", Body: t.Args}, nil
	}
	f.loader = scheduleLoader{broker: f.engine, log: zerolog.New(&f.log), template: template}
	return f
}

func (f *scheduleFixture) ask(op core.Op) core.Reply {
	return core.DoOnce(f.engine, core.Internal, op)[0]
}

// want compares the names of the schedules.
func (f *scheduleFixture) want(names ...string) []core.Schedule {
	f.Helper()
	all := f.ask(&core.ListSchedules{}).Schedules
	var got []string
	for _, s := range all {
		got = append(got, s.Name)
	}
	if !slices.Equal(got, names) {
		f.Fatalf("schedules %q, want %q", got, names)
	}
	return all
}

func TestSchedulesFollowTheConfiguration(t *testing.T) {
	t.Parallel()
	f := newScheduleFixture(t)
	f.ask(&core.PutSchedule{Schedule: core.Schedule{Name: "other", Cron: "0 * * * *", Job: &core.Job{Queue: "q"}}})
	hourly := config.Cron{Schedule: "0 * * * *", Job: config.CronJob{Type: "T", Args: []byte("[]")}}
	named := config.Cron{
		Name: "named", Schedule: "*/5 * * * *", Missed: "one", Backlog: 3,
		Job: config.CronJob{Type: "T", Args: []byte("[1]")},
	}
	f.loader.load([]config.Cron{hourly, hourly, named})
	all := f.want("T 0 * * * *", "T 0 * * * * (2)", "named", "other")
	if s := all[2]; s.Missed != core.MissedOne || s.Backlog != 3 || !s.FromConfig || s.Zone != "Local" ||
		string(s.Job.Body) != "[1]" {
		t.Errorf("stored: %+v", s)
	}
	if !strings.Contains(f.log.String(), `"added":3,"changed":0,"removed":0`) {
		t.Errorf("log: %s", f.log.String())
	}
	f.clock.Advance(5 * time.Minute)
	f.engine.Tick()
	f.log.Reset()
	f.loader.load([]config.Cron{hourly, hourly, named})
	if f.log.Len() != 0 {
		t.Errorf("nothing has changed, log: %s", f.log.String())
	}
	named.Job.Args = []byte("[2]")
	f.loader.load([]config.Cron{named, {Name: "refused", Schedule: "0 * * * *"}})
	all = f.want("named", "other")
	if s := all[0]; s.Runs != 1 || s.LastSeq == 0 || string(s.Job.Body) != "[2]" {
		t.Errorf("changed: %+v", s)
	}
	for _, words := range []string{`"added":0,"changed":1,"removed":2`, `"error":"empty","name":"refused"`} {
		if !strings.Contains(f.log.String(), words) {
			t.Errorf("%s is not in %s", words, f.log.String())
		}
	}
}
