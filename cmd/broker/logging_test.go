package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core"
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
