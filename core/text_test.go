package core

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCutTextKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abc", 2, "ab"},
		{"abc", 0, ""},
		{"aé", 2, "a"},
		{"aé", 3, "aé"},
		{"é", 1, ""},
		{"\U0001F600\U0001F600", 7, "\U0001F600"},
		{"\U0001F600\U0001F600", 5, "\U0001F600"},
		{"\U0001F600", 3, ""},
		{strings.Repeat("\x80", 20), 10, strings.Repeat("\x80", 10)},
	} {
		if got := CutText(c.in, c.limit); got != c.want {
			t.Errorf("CutText(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
		if got := string(CutText([]byte(c.in), c.limit)); got != c.want {
			t.Errorf("CutText of the bytes %q, %d = %q, want %q", c.in, c.limit, got, c.want)
		}
		if got := CutText(c.in, c.limit); utf8.ValidString(c.in) && !utf8.ValidString(got) {
			t.Errorf("CutText(%q, %d) = %q is not UTF-8", c.in, c.limit, got)
		}
	}
}

// It measures the heap of the process, so it does not run in parallel.
func TestCutTextDoesNotKeepTheRestInMemory(t *testing.T) {
	const long = 64 << 20
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	kept := CutText(strings.Repeat("x", long), 10)
	if after := heap(); after > before+long/2 {
		t.Errorf("%d bytes of text keep %d MiB", len(kept), (after-before)>>20)
	}
	runtime.KeepAlive(kept)
}
