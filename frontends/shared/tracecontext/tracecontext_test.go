package tracecontext_test

import (
	"strings"
	"testing"

	"broker/frontends/shared/tracecontext"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestValidTraceparents(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		text    string
		sampled bool
	}{
		"sampled":                     {parent, true},
		"not sampled":                 {parent[:54] + "0", false},
		"unknown flags":               {parent[:53] + "ff", true},
		"later version":               {"cc" + parent[2:], true},
		"later version with a suffix": {"cc" + parent[2:] + "-what-the-future-brings", true},
	} {
		c, ok := tracecontext.Parse(x.text)
		if !ok || c.Sampled != x.sampled || c.TraceID[0] != 0x4b || c.TraceID[15] != 0x36 || c.SpanID[1] != 0xf0 {
			t.Errorf("%s: %+v, %v", name, c, ok)
		}
		if got := tracecontext.Join(x.text, ""); got != x.text {
			t.Errorf("%s: joined to %q", name, got)
		}
		if got := tracecontext.TraceID(x.text); got != parent[3:35] {
			t.Errorf("%s: trace id %q", name, got)
		}
	}
}

func TestInvalidTraceparentsAreIgnored(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":                    "",
		"words":                    "what is this",
		"too short":                parent[:54],
		"version 00 with a suffix": parent + "-1",
		"no dash before a suffix":  "cc" + parent[2:] + "1",
		"version ff":               "ff" + parent[2:],
		"upper case":               strings.ToUpper(parent),
		"not hexadecimal":          strings.Replace(parent, "4b", "4g", 1),
		"trace id of zeros":        "00-" + strings.Repeat("0", 32) + parent[35:],
		"parent id of zeros":       parent[:36] + strings.Repeat("0", 16) + "-01",
		"dashes elsewhere":         strings.Replace(parent, "-01", "_01", 1),
		"too long":                 "cc" + parent[2:] + "-" + strings.Repeat("x", 100),
		"control character":        "cc" + parent[2:] + "-\n",
		"space":                    "cc" + parent[2:] + "- x",
	} {
		if got := tracecontext.Join(text, "a=b"); got != "" {
			t.Errorf("%s: joined to %q", name, got)
		}
	}
}

func TestStateIsKeptBehindTheParent(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ name, state, want string }{
		{"none", "", ""},
		{"members", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"},
		{"spaces", " a=1, b=2\t", "a=1, b=2"},
		{"too long", strings.Repeat("a", 513), ""},
		{"control character", "a=1\r\nb=2", ""},
	} {
		trace := tracecontext.Join(parent, x.state)
		if p, s := tracecontext.Split(trace); p != parent || s != x.want {
			t.Errorf("%s: %q and %q", x.name, p, s)
		}
		if tracecontext.TraceID(trace) != parent[3:35] {
			t.Errorf("%s: no trace id in %q", x.name, trace)
		}
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	trace := tracecontext.Join(parent, "a=b")
	if n := testing.AllocsPerRun(100, func() { tracecontext.Parse(trace) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzJoin(f *testing.F) {
	f.Add(parent, "a=b")
	f.Add("cc"+parent[2:]+"-x", "")
	f.Fuzz(func(t *testing.T, parent, state string) {
		trace := tracecontext.Join(parent, state)
		if trace == "" {
			return
		}
		p, s := tracecontext.Split(trace)
		if p != parent || len(trace) > 1<<10 || tracecontext.TraceID(trace) == "" {
			t.Fatalf("%q and %q became %q", parent, state, trace)
		}
		if tracecontext.Join(p, s) != trace {
			t.Fatalf("%q is not stable", trace)
		}
	})
}
