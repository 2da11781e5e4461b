package beanstalk

import (
	"math"
	"testing"
)

func TestNamesAreQuotedOnlyWhereYAMLReadsSomethingElse(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"mail": "mail", "123": `"123"`, "1e5": `"1e5"`, "true": `"true"`, "No": `"No"`, "0x1f": `"0x1f"`, "a1": "a1",
		"1a":         "1a",
		"2001-01-01": `"2001-01-01"`, ".5": `".5"`, "1_000": `"1_000"`, "v1.2": "v1.2", "null": `"null"`,
	} {
		if got := quoted(name); got != want {
			t.Errorf("%s is written as %s, want %s", name, got, want)
		}
	}
}

func TestSystemTextsAreQuotedASCII(t *testing.T) {
	t.Parallel()
	if got := printable("host: \"a\"\n\u00e9"); got != `"host_ _a____"` && got != `"host_ _a___"` {
		t.Error(got)
	}
}

func TestPrioritiesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for _, pri := range []uint64{0, 1, 1023, 1024, 1025, 2_147_484_671, 2_147_484_672, 2_147_484_673, math.MaxUint32} {
		if got := priOf(priorityOf(pri)); got != pri {
			t.Errorf("pri %d comes back as %d", pri, got)
		}
	}
	if priOf(5000) != 0 || priOf(-1<<32) != math.MaxUint32 {
		t.Error("priorities of other protocols are cut")
	}
	l := lease{priority: 5000}
	if l.changed(0) != nil || *l.changed(1) != 1023 {
		t.Error("sending back the pri that was shown changes nothing")
	}
}
