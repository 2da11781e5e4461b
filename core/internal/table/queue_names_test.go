package table

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQueuesAreListedByNameWithoutHiddenOnes(t *testing.T) {
	t.Parallel()
	x, want := New(Options{}), []string{}
	for i := range 3 * maxUnsorted {
		name := fmt.Sprint("queue ", i*7919%1009)
		n := x.AddQueue(&Queue{Name: name})
		switch {
		case i%5 == 0:
			x.RemoveQueue(n) // it is rarely sorted in yet
		case i%7 == 0:
			x.Hide(n)
		default:
			want = append(want, name)
		}
	}
	for i, name := range want { // most are sorted in now
		if i%11 == 0 {
			x.RemoveQueue(x.QueueNumber(name))
			want[i] = ""
		}
	}
	want = slices.DeleteFunc(want, func(name string) bool { return name == "" })
	slices.Sort(want)
	for _, offset := range []int{0, 1, 300, len(want), len(want) + 1} {
		for _, limit := range []int{0, 1, 299} {
			got := []string{}
			x.EachRow("queue", "", offset, limit, func(n uint32) { got = append(got, x.QueueAt(n).Name) })
			from, to := min(offset, len(want)), len(want)
			if limit > 0 {
				to = min(from+limit, to)
			}
			if !slices.Equal(got, want[from:to]) {
				t.Errorf("offset %d, limit %d: %d rows, want %d", offset, limit, len(got), to-from)
			}
		}
	}
	if got := x.QueueFold(strings.ToUpper(want[3])); got != x.QueueNumber(want[3]) {
		t.Errorf("ignoring case, queue %d is found", got)
	}
	c := Check{t: x, fail: t.Errorf}
	c.queueNames()
}

// foldTexts are texts of which some are equal ignoring case.
var foldTexts = []string{
	"", "a", "A", "ab", "aB", "AB", "b", "straße", "STRASSE", "ſ", "s", "S", "K", "k", "\u212a", "é", "É", "世界",
	"a\xff", "a\xfe", "\xef", "A\xff", "\ufffd", "\xff", "[", "{",
}

func TestFoldNameAgreesWithEqualFold(t *testing.T) {
	t.Parallel()
	for _, a := range foldTexts {
		for _, b := range foldTexts {
			got, want := foldName(a) == foldName(b), strings.EqualFold(a, b)
			if got != want && utf8.ValidString(a) && utf8.ValidString(b) {
				t.Errorf("%q and %q: equal %v, want %v", a, b, got, want)
			}
		}
		if folded := foldName(a); foldName(folded) != folded {
			t.Errorf("%q becomes %q, and that %q", a, folded, foldName(folded))
		}
	}
	if foldName("A\xff") != foldName("a\xff") || foldName("a\xff") == foldName("a\xfe") ||
		foldName("\xff") == foldName("\ufffd") {
		t.Error("bytes that are not text are not compared as they are")
	}
}

func TestQueueIsFoundIgnoringCaseAsByAWalk(t *testing.T) {
	t.Parallel()
	x, random := New(Options{}), rand.New(rand.NewPCG(1, 2))
	c := Check{t: x, fail: t.Errorf}
	for range 5000 {
		name := foldTexts[1+random.IntN(len(foldTexts)-1)]
		if n := x.QueueNumber(name); n != 0 {
			x.RemoveQueue(n)
		} else {
			x.AddQueue(&Queue{Name: name})
		}
		asked, want := foldTexts[random.IntN(len(foldTexts))], ""
		for _, q := range x.queues {
			if q != nil && foldName(q.Name) == foldName(asked) && (want == "" || q.Name < want) {
				want = q.Name
			}
		}
		if got := x.QueueFold(asked); got != x.QueueNumber(want) {
			t.Fatalf("%q: queue %d is found in place of %q", asked, got, want)
		}
	}
	c.queueNames()
}
