package process

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core"
)

func TestEngineEventsAreLogged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		tell func(core.Listener)
		want []string
	}{
		{func(l core.Listener) {
			l.ClockSet(-2 * time.Hour)
		}, []string{`"warn"`, "system clock changed", `"by":"-2h0m0s"`}},
		{func(l core.Listener) {
			l.StoreFailed(errors.New("no room"))
		}, []string{`"error"`, "store failed", "no room"}},
		{func(l core.Listener) { l.DiskFull(true, 77) }, []string{`"error"`, "disk nearly full", `"free_bytes":77`}},
		{func(l core.Listener) {
			l.DiskFull(false, 88)
		}, []string{`"info"`, "disk space is available again", `"free_bytes":88`}},
		{func(l core.Listener) {
			l.JobDamaged(7, errors.New("bad sum"))
		}, []string{`"error"`, "damaged", `"seq":7`, "bad sum"}},
		{func(l core.Listener) { l.StoreWarning("odd") }, []string{`"warn"`, "store warning", "odd"}},
		{func(l core.Listener) { l.StoreCreated("/new") }, []string{`"info"`, "made an empty store", `"data":"/new"`}},
		{func(l core.Listener) {
			l.Recovered([len(core.States) + 1]int{}, time.Second)
		}, []string{`"info"`, "store opened", `"jobs":0`}},
	} {
		var out bytes.Buffer
		test.tell(listeners{core.NopListener{}, logListener{log: zerolog.New(&out)}})
		for _, words := range test.want {
			if !strings.Contains(out.String(), words) {
				t.Errorf("%s is not in %q", words, out.String())
			}
		}
	}
}

func TestRunsOfSchedulesAreLogged(t *testing.T) {
	t.Parallel()
	due := core.InstantOf(time.Date(2030, 1, 1, 1, 0, 0, 0, time.UTC))
	for _, test := range []struct {
		run  core.ScheduleRun
		want []string
	}{
		{core.ScheduleRun{Seq: 7}, []string{`"debug"`, "scheduled job submitted", `"seq":7`}},
		{core.ScheduleRun{Result: core.RunMissed}, []string{`"warn"`, "scheduled jobs skipped, too old"}},
		{core.ScheduleRun{Result: core.RunBacklogged}, []string{`"info"`, "scheduled jobs skipped, backlog reached"}},
		{
			core.ScheduleRun{Result: core.RunRefused, Err: core.ErrFull},
			[]string{`"warn"`, "scheduled job refused", core.ErrFull.Error()},
		},
		{
			core.ScheduleRun{Result: core.RunRefused, Err: core.ErrNotUnique},
			[]string{`"info"`, "scheduled job refused"},
		},
	} {
		r := test.run
		r.Name, r.Cron, r.Queue, r.Type, r.DueAt = "report", "0 1 * * *", "q", "T", due
		var out bytes.Buffer
		logListener{log: zerolog.New(&out)}.ScheduleRan(r)
		for _, words := range append(test.want, `"name":"report"`, `"schedule":"0 1 * * *"`, `"queue":"q"`,
			`"type":"T"`, "2030-01-01T01:00:00Z") {
			if !strings.Contains(out.String(), words) {
				t.Errorf("%s is not in %q", words, out.String())
			}
		}
	}
}
