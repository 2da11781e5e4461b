package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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
