package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestOutageIsPrintedOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	o := outage{patience: time.Hour, say: func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) }}
	o.answered()
	for range 3 {
		if err := o.failed(errors.New("no broker answers\nstart one")); err != nil {
			t.Error(err)
		}
	}
	o.answered()
	o.answered()
	for _, text := range []string{"EOF", "store failed", "store failed"} {
		if err := o.failed(errors.New(text)); err != nil {
			t.Error(err)
		}
	}
	want := "no broker answers; trying again\nthe broker answers again\nEOF; trying again\nstore failed; trying again\n"
	if log.String() != want {
		t.Errorf("printed %q, want %q", log.String(), want)
	}
	o.last = o.last.Add(-sayEvery)
	want += "store failed; trying again\n"
	if err := o.failed(errors.New("store failed")); err != nil || log.String() != want {
		t.Errorf("%v; after a minute printed %q", err, log.String())
	}
}

func TestAnOutageThatLastsEndsWithTheCodeOfItsError(t *testing.T) {
	t.Parallel()
	gone := &ExitError{Code: ExitUnreachable, Err: errors.New("no broker answers")}
	for _, c := range []struct {
		patience, ago time.Duration
		ends          bool
	}{{time.Minute, time.Hour, true}, {time.Hour, time.Minute, false}, {0, time.Hour, false}} {
		o := outage{patience: c.patience, say: func(string, ...any) {}, since: time.Now().Add(-c.ago)}
		err := o.failed(gone)
		switch {
		case (err != nil) != c.ends,
			c.ends && (Code(err) != ExitUnreachable || !strings.Contains(err.Error(), "given up")):
			t.Errorf("patience %v after %v: %v", c.patience, c.ago, err)
		}
	}
}
