package timer

import (
	"math/rand/v2"
	"testing"

	"broker/core"
)

func TestDeadlinesStayOrderedAfterRemovals(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var h Heap
	live := map[uint32]ID{}
	at := map[uint32]core.Instant{}
	for n := uint32(1); n < 20_000; n++ {
		if rng.IntN(3) == 0 {
			for handle, id := range live {
				h.Remove(&id)
				if id != 0 {
					t.Fatal("Remove left the id set")
				}
				delete(live, handle)
				delete(at, handle)
				break
			}
			continue
		}
		when := core.Instant(rng.IntN(1000) + 1)
		live[n], at[n] = h.Add(when, Owner{Kind: uint8(n % 5), Handle: n}), when
		if got := h.At(live[n]); got != when {
			t.Fatalf("At = %d, want %d", got, when)
		}
	}
	if h.Len() != len(live) {
		t.Fatalf("Len = %d, want %d", h.Len(), len(live))
	}
	last := core.Instant(0)
	for h.Len() > 0 {
		if h.Next() < last {
			t.Fatalf("deadline %d after %d", h.Next(), last)
		}
		last = h.Next()
		if _, due := h.PopDue(last - 1); due {
			t.Fatal("popped before its time")
		}
		o, due := h.PopDue(last)
		if !due || at[o.Handle] != last || uint32(o.Kind) != o.Handle%5 {
			t.Fatalf("popped %+v at %d, want one of that instant", o, last)
		}
		delete(at, o.Handle)
	}
	if len(at) != 0 {
		t.Fatalf("%d deadlines lost", len(at))
	}
}

func TestShiftMovesOnlySelectedDeadlines(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	var h Heap
	want := map[uint32]core.Instant{}
	for n := uint32(1); n <= 1000; n++ {
		at := core.Instant(rng.IntN(1000) + 2000)
		h.Add(at, Owner{Kind: uint8(n % 2), Handle: n})
		if n%2 == 1 {
			at -= 1500
		}
		want[n] = at
	}
	h.Shift(func(o Owner) bool { return o.Kind == 1 }, -1500)
	last := core.Instant(0)
	for h.Len() > 0 {
		at := h.Next()
		o, _ := h.PopDue(at)
		if at < last || want[o.Handle] != at {
			t.Fatalf("deadline of %d is %d after %d, want %d", o.Handle, at, last, want[o.Handle])
		}
		last = at
	}
}
