package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestListKeepsOrderUnderRandomUse(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 20 {
		key := map[uint32]int{}
		before := func(a, b uint32) bool { return key[a] < key[b] || key[a] == key[b] && a < b }
		var l List
		var model []uint32
		for x := uint32(1); x < 3000; x++ {
			switch {
			case len(model) > 0 && rng.IntN(5) == 0:
				i := rng.IntN(len(model))
				if rng.IntN(2) == 0 {
					i = 0
				}
				if !l.Remove(model[i], before) {
					t.Fatalf("round %d: %d not found", round, model[i])
				}
				if l.Remove(model[i], before) {
					t.Fatalf("round %d: %d removed twice", round, model[i])
				}
				model = slices.Delete(model, i, i+1)
			default:
				key[x] = rng.IntN(3)
				if rng.IntN(3) == 0 {
					key[x] = rng.IntN(5000)
				}
				l.Push(x, before)
				model = append(model, x)
				slices.SortFunc(model, func(a, b uint32) int {
					if before(a, b) {
						return -1
					}
					return 1
				})
			}
			if l.Len() != len(model) || len(model) > 0 && l.Front() != model[0] {
				t.Fatalf("round %d: front %d of %d, want %v", round, l.Front(), l.Len(), model[0])
			}
		}
		if got := l.Slice(0, l.Len()+5, nil); !slices.Equal(got, model) {
			t.Fatalf("round %d: order differs", round)
		}
		if got := l.Slice(7, 300, nil); !slices.Equal(got, model[7:307]) {
			t.Fatalf("round %d: page differs", round)
		}
		if l.At(11) != model[11] || l.At(len(model)) != 0 {
			t.Fatalf("round %d: At is wrong", round)
		}
	}
}

func BenchmarkPushPop(b *testing.B) {
	var l List
	before := func(a, b uint32) bool { return a < b }
	b.ReportAllocs()
	for i := range b.N {
		l.Push(uint32(i+1), before)
		if l.Len() > 500 {
			l.Remove(l.Front(), before)
		}
	}
}

func TestRepeatedlyEmptiedListDoesNotAllocate(t *testing.T) {
	before := func(a, b uint32) bool { return a < b }
	var l List
	round := func() {
		for x := range uint32(3) {
			l.Push(x+1, before)
		}
		for x := range uint32(3) {
			l.Remove(x+1, before)
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n > 0 {
		t.Errorf("%v allocations a round", n)
	}
}
