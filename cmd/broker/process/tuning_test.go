package process

import (
	"runtime"
	"testing"
)

func TestGarbageIsBoundedForAnyHeapSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 1200},
		{minLiveBytes, 1200},
		{garbageBytes, 100},
		{480 << 20, 10},
		{100 << 30, minGCPercent},
	} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("%d bytes live: %d %%, want %d", c.live, got, c.want)
		}
	}
}

func TestEachCollectionSetsTheGCPercentAgain(t *testing.T) {
	t.Parallel()
	calls := make(chan struct{}, 1000)
	afterCollections(func() { calls <- struct{}{} })
	for range 3 {
		<-calls
		runtime.GC()
	}
	<-calls
}
