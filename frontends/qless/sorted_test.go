package qless

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSortedSetStaysSortedAfterAnyChanges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var z sortedSet
	var want []member
	change := func(m member) {
		if i := slices.Index(want, m); i >= 0 {
			want = slices.Delete(want, i, i+1)
			z.delete(m)
		} else {
			want = append(want, m)
			z.insert(m)
		}
	}
	for i := range 3 * blockSize {
		change(member{1, fmt.Sprintf("%05d", i)})
	}
	for range 4000 {
		change(member{float64(random.IntN(3)), fmt.Sprintf("%05d", random.IntN(4*blockSize))})
	}
	slices.SortFunc(want, compareMembers)
	var got []member
	z.each(0, func(m member) bool {
		got = append(got, m)
		return true
	})
	if !slices.Equal(got, want) || z.len() != len(want) {
		t.Errorf("%d members, the length is %d, want %d", len(got), z.len(), len(want))
	}
	for _, b := range z.blocks {
		if len(b) == 0 || len(b) > blockSize {
			t.Errorf("a block has %d members", len(b))
		}
	}
}

func TestZScoreOfTheListsOfJobs(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	c.call("put", "1", "me", "q", "late", "K", "{}", "9")
	c.call("put", "1", "me", "q", "now", "K", "{}", "0", "priority", "2")
	for key, want := range map[string]string{
		"ql:q:q-scheduled late": "10", "ql:q:q-work now": "1.9999999999", "ql:q:q-work late": "(nil)",
		"ql:q:other-scheduled late": "(nil)", "ql:q:q-locks nobody": "(nil)",
	} {
		var set, name string
		if _, err := fmt.Sscan(key, &set, &name); err != nil {
			t.Fatal(err)
		}
		if got := c.do("ZSCORE", set, name); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}
