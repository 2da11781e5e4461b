package console

import (
	"fmt"
	"strings"
	"testing"
)

// TestABodyIsComparedLineByLine shows what was removed and added, with three equal lines around it.
func TestABodyIsComparedLineByLine(t *testing.T) {
	t.Parallel()
	show := func(before, after string) string {
		text := ""
		for _, l := range diffLines(before, after) {
			text += map[string]string{"same": " ", "old": "-", "new": "+", "gap": "@"}[l.Op] + l.Text + "|"
		}
		return text
	}
	for _, c := range []struct{ before, after, want string }{
		{"a", "a", ""},
		{"a", "b", "-a|+b|"},
		{"a\nb\nc", "a\nc", " a|-b| c|"},
		{"a\nb\nc\nd", "a\nx\nc\ny", " a|-b|+x| c|-d|+y|"},
		{"1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\nsix", "@…| 3| 4| 5|-6|+six|"},
	} {
		if got := show(c.before, c.after); got != c.want {
			t.Errorf("from %q to %q: %q, want %q", c.before, c.after, got, c.want)
		}
	}
	long := func(word string) string {
		lines := make([]string, 5000)
		for i := range lines {
			lines[i] = fmt.Sprint(word, i)
		}
		return strings.Join(lines, "\n")
	}
	if n := len(diffLines(long("a"), long("b"))); n != 10_000 {
		t.Errorf("two long texts without a common line differ in %d lines", n)
	}
}
