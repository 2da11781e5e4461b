package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWalkStartsAnywhere compares walks in both directions, from every place, with a plain slice.
func TestWalkStartsAnywhere(t *testing.T) {
	t.Parallel()
	before := func(a, b uint32) bool { return a < b }
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 127, 128, 129, 1000} {
		var l List
		var all []uint32
		for _, i := range rng.Perm(n) {
			l.Push(uint32(2*i+2), before)
		}
		for range n / 3 {
			l.Remove(uint32(2*rng.IntN(n)+2), before)
		}
		all = l.Slice(0, l.Len(), nil)
		if got := walk(l.From(nil)); !slices.Equal(got, all) {
			t.Fatalf("%d jobs: from the beginning %v, want %v", n, got, all)
		}
		back := slices.Clone(all)
		slices.Reverse(back)
		if got := walk(l.Back(nil)); !slices.Equal(got, back) {
			t.Fatalf("%d jobs: from the end %v, want %v", n, got, back)
		}
		for range 50 {
			key := uint32(rng.IntN(2*n + 4))
			at, _ := slices.BinarySearch(all, key)
			passed := func(h uint32) bool { return h < key }
			if got := walk(l.From(passed)); !slices.Equal(got, all[at:]) {
				t.Fatalf("%d jobs: from %d %v, want %v", n, key, got, all[at:])
			}
			if got := walk(l.Back(passed)); !slices.Equal(got, back[len(all)-at:]) {
				t.Fatalf("%d jobs: back from %d %v, want %v", n, key, got, back[len(all)-at:])
			}
		}
	}
}

func walk(w Walker) (all []uint32) {
	for h := w.Next(); h != 0; h = w.Next() {
		all = append(all, h)
	}
	return all
}
