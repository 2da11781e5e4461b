package cli

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestBarShowsShareAndTimeLeft(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		total, done int64
		unit        BarUnit
		after       time.Duration
		want        string
	}{
		"none":         {200, 0, BarJobs, time.Second, "  0% [                              ] 0/200 jobs"},
		"half":         {200, 100, BarJobs, 7 * time.Second, " 50% [===============               ] 100/200 jobs, 7s left"},
		"all":          {200, 200, BarJobs, 7 * time.Second, "100% [==============================] 200/200 jobs, 0s left"},
		"too many":     {200, 300, BarJobs, time.Second, "100% [==============================] 300/200 jobs, 0s left"},
		"none to do":   {0, 0, BarJobs, time.Second, "  0% [                              ] 0/0 jobs"},
		"bytes":        {20e6, 5e6, BarBytes, time.Minute, " 25% [=======                       ] 5.0/20.0 MB, 3m0s left"},
		"unknown":      {-1, 3000, BarKeys, 2 * time.Second, "3000 keys, 1500/s"},
		"at the start": {-1, 0, BarKeys, 0, "0 keys, 0/s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &Bar{total: tc.total, unit: tc.unit}
			if got := b.line(tc.done, tc.after); got != tc.want {
				t.Errorf("\n got %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestBarIsDrawnOverItselfAndRemoved(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := &Bar{w: &out, total: -1, unit: BarJobs, started: time.Now().Add(-time.Hour)}
	b.Set(36)
	b.Set(37) // too soon
	b.Finish()
	if got, want := out.String(), "\r36 jobs, 0/s\x1b[K\r\x1b[K"; got != want {
		t.Errorf("drawn %q, want %q", got, want)
	}
}

func TestBarShowsNothingWithoutATerminal(t *testing.T) {
	t.Parallel()
	var cmd cobra.Command
	cmd.SetErr(io.Discard)
	b := NewBar(&cmd, 10, BarJobs)
	b.Set(5)
	b.Finish()
	if b.w != nil {
		t.Error("a file counts as a terminal")
	}
}
