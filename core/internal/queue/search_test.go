package queue_test

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"broker/core/internal/queue"
)

// TestSearchMatchesASortedSlice compares Search with a search in a sorted slice, while the list is filled and
// emptied.
func TestSearchMatchesASortedSlice(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var l queue.List
	var sorted []uint32
	before := func(a, b uint32) bool { return a < b }
	for step := range 20_000 {
		x := 1 + uint32(rng.IntN(5000))
		at, there := slices.BinarySearch(sorted, x)
		switch remove := rng.IntN(10) < 4+2*(step/10_000); {
		case there && remove:
			l.Remove(x, before)
			sorted = slices.Delete(sorted, at, at+1)
		case !there && !remove:
			l.Push(x, before)
			sorted = slices.Insert(sorted, at, x)
		}
		y := uint32(rng.IntN(5002))
		want := sort.Search(len(sorted), func(i int) bool { return sorted[i] >= y })
		if got := l.Search(func(x uint32) bool { return x < y }); got != want {
			t.Fatalf("step %d: %d handles are below %d, want %d", step, got, y, want)
		}
	}
}
