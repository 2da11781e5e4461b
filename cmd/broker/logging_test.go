package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core"
	"broker/frontends/cron"
)

// What the engine tells reaches the log, in words that an operator can look for.
func TestLogTellsWhatTheEngineTells(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		tell func(core.Listener)
		want []string
	}{
		{func(l core.Listener) { l.ClockSet(-2 * time.Hour) }, []string{`"warn"`, "the clock was set", `"by":"-2h0m0s"`}},
		{func(l core.Listener) { l.StoreFailed(errors.New("no room")) }, []string{`"error"`, "store failed", "no room"}},
		{func(l core.Listener) { l.DiskFull(true, 77) }, []string{`"error"`, "disk nearly full", `"free_bytes":77`}},
		{func(l core.Listener) { l.DiskFull(false, 88) }, []string{`"info"`, "disk has room again", `"free_bytes":88`}},
		{func(l core.Listener) { l.StoreWarning("odd") }, []string{`"warn"`, "store warns", "odd"}},
		{func(l core.Listener) { l.Recovered([len(core.States) + 1]int{}, time.Second) }, []string{`"info"`, "store is open", `"jobs":0`}},
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

// What becomes of the timetable's runs is told with the entry and the time that is concerned.
func TestLogTellsWhatTheTimetableTells(t *testing.T) {
	t.Parallel()
	entry, due := cron.Entry{Spec: "0 1 * * *", Type: "T", Queue: "q"}, core.InstantOf(time.Date(2030, 1, 1, 1, 0, 0, 0, time.UTC))
	for _, test := range []struct {
		tell func(cron.Listener)
		want []string
	}{
		{func(l cron.Listener) { l.Submitted(entry, due, 7) }, []string{`"debug"`, "cron job submitted", `"seq":7`}},
		{func(l cron.Listener) { l.Missed(entry, due) }, []string{`"warn"`, "cron jobs left out, they are too old"}},
		{func(l cron.Listener) { l.Refused(entry, due, core.ErrFull) }, []string{`"warn"`, "cron job refused", core.ErrFull.Error()}},
		{func(l cron.Listener) { l.Refused(entry, due, core.ErrNotUnique) }, []string{`"info"`, "cron job refused"}},
	} {
		var out bytes.Buffer
		test.tell(cronLog{zerolog.New(&out)})
		for _, words := range append(test.want, `"schedule":"0 1 * * *"`, `"queue":"q"`, `"type":"T"`, "2030-01-01T01:00:00Z") {
			if !strings.Contains(out.String(), words) {
				t.Errorf("%s is not in %q", words, out.String())
			}
		}
	}
}
