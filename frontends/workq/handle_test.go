package workq

import (
	"strings"
	"testing"

	"broker/core"
)

// A long prefix is cut to leave room for the number.
func TestGearmanHandlesAreNamesOfJobs(t *testing.T) {
	t.Parallel()
	long := "an:" + strings.Repeat("x", 57)
	for _, c := range []struct {
		prefix, name string
		seq          uint64
	}{
		{"X", "X:1", 1},
		{"X", "X:18446744073709551615", 1<<64 - 1},
		{"X", "X:18446744073709551616", 0},
		{"X", "X:01", 0},
		{"X", "X:", 0},
		{"X", ":1", 0},
		{"X", "Y:1", 0},
		{long, long + ":12", 12},
		{long, long[:59] + ":123", 123},
		{long, long[:42] + ":18446744073709551615", 1<<64 - 1},
		{long, long[:59] + ":12", 0},
		{long, long + ":123", 0},
		{long, strings.Repeat("x", 59) + ":123", 0},
	} {
		refs := New(nil, Options{Handles: core.NewHandleFormat(c.prefix)}).refs([]byte(c.name))
		if last := refs[len(refs)-1]; last.Seq != c.seq || refs[0] != (core.Ref{ID: c.name}) {
			t.Errorf("prefix %q: %q may mean %+v, want the number %d", c.prefix, c.name, refs, c.seq)
		}
	}
}
