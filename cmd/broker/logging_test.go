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

func TestEngineEventsAreLogged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		tell func(core.Listener)
		want []string
	}{
		{func(l core.Listener) { l.ClockSet(-2 * time.Hour) }, []string{`"warn"`, "system clock changed", `"by":"-2h0m0s"`}},
		{func(l core.Listener) { l.StoreFailed(errors.New("no room")) }, []string{`"error"`, "store failed", "no room"}},
		{func(l core.Listener) { l.DiskFull(true, 77) }, []string{`"error"`, "disk nearly full", `"free_bytes":77`}},
		{func(l core.Listener) { l.DiskFull(false, 88) }, []string{`"info"`, "disk space is available again", `"free_bytes":88`}},
		{func(l core.Listener) { l.StoreWarning("odd") }, []string{`"warn"`, "store warning", "odd"}},
		{func(l core.Listener) { l.Recovered([len(core.States) + 1]int{}, time.Second) }, []string{`"info"`, "store opened", `"jobs":0`}},
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

// Each event of a cron run is logged with its entry and its time.
func TestCronEventsAreLogged(t *testing.T) {
	t.Parallel()
	entry, due := cron.Entry{Spec: "0 1 * * *", Type: "T", Queue: "q"}, core.InstantOf(time.Date(2030, 1, 1, 1, 0, 0, 0, time.UTC))
	for _, test := range []struct {
		tell func(cron.Listener)
		want []string
	}{
		{func(l cron.Listener) { l.Submitted(entry, due, 7) }, []string{`"debug"`, "cron job submitted", `"seq":7`}},
		{func(l cron.Listener) { l.Missed(entry, due) }, []string{`"warn"`, "cron jobs skipped, too old"}},
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
