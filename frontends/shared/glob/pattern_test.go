package glob

import (
	"strings"
	"testing"
)

// matches compiles a pattern and matches it.
func matches(t testing.TB, pattern, text string) bool {
	t.Helper()
	p, err := Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return p.Match([]byte(text))
}

// slowMatch is the definition of a match, by backtracking.
func slowMatch(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		for i := range len(text) + 1 {
			if slowMatch(pattern[1:], text[i:]) {
				return true
			}
		}
		return false
	case text == "":
		return false
	}
	n, ok := item(pattern, text[0])
	return ok && slowMatch(pattern[n:], text[1:])
}

// Every pattern within the limit compiles and matches the same texts as slowMatch.
func FuzzPattern(f *testing.F) {
	f.Add("*a[b-d]?\\*", "xxac*")
	f.Add("[^a", "b")
	f.Add("*a*b*", "xxabab")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		pattern = pattern[:min(len(pattern), maxPattern)]
		if !matches(t, "*", text) {
			t.Errorf("* does not match %q", text)
		}
		literal := strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`,
			`\\`).Replace(text[:min(len(text), maxPattern/2-1)])
		if !matches(t, "*"+literal+"*", text) {
			t.Errorf("%q does not match %q", literal, text)
		}
		got := matches(t, pattern, text)
		if strings.Count(pattern, "*") < 3 && len(text) < 50 && got != slowMatch(pattern, text) {
			t.Errorf("%q matches %q: %v", pattern, text, got)
		}
	})
}

func TestPatternsFollowRedis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "abc", true},
		{"a", "a", true},
		{"a", "ab", false},
		{"*b*", "abc", true},
		{"*b", "abc", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"a**c", "abbc", true},
		{"[ab]x", "bx", true},
		{"[ab]x", "cx", false},
		{"[a-c]x", "bx", true},
		{"[c-a]x", "bx", true},
		{"[^a]x", "bx", true},
		{"[^a]x", "ax", false},
		{`[\]]`, "]", true},
		{"[a", "a", true},
		{"[", "a", false},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`a\`, `a\`, true},
		{"*a*a*a*b", strings.Repeat("a", 200), false},
		{"*" + strings.Repeat("ab", 100) + "*c", "x" + strings.Repeat("ab", 110) + "c", true},
		{"*" + strings.Repeat("ab", 100) + "*c", "x" + strings.Repeat("ab", 99) + "c", false},
		{strings.Repeat("?", 63), strings.Repeat("a", 63), true},
		{strings.Repeat("?", 64), strings.Repeat("a", 64), true},
		{strings.Repeat("?", 65), strings.Repeat("a", 64), false},
		{strings.Repeat("a", maxPattern), strings.Repeat("a", maxPattern), true},
		{strings.Repeat("a", maxPattern-1) + "*", strings.Repeat("a", maxPattern), true},
		{`*"jobtype":"Mail"*`, `{"jid":"x","jobtype":"Mail","args":[]}`, true},
	} {
		if got := matches(t, c.pattern, c.text); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
}

// Patterns are bounded in length, and matching is linear in the text.
func TestMatchingIsLinear(t *testing.T) {
	t.Parallel()
	if _, err := Compile(strings.Repeat("a", maxPattern+1)); err == nil ||
		err.Error() != "pattern is longer than 256 bytes" {
		t.Errorf("a pattern beyond the limit: %v", err)
	}
	// This would take days with backtracking.
	pattern := strings.Repeat("*"+strings.Repeat("a", 20), 10) + "b"
	if matches(t, pattern, strings.Repeat("a", 8<<20)) {
		t.Error("matched")
	}
}
