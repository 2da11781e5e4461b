package core

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestHistogramErrorIsBelowFourPercent compares quantiles of the histogram with quantiles of the durations.
func TestHistogramErrorIsBelowFourPercent(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(math.Exp(rng.Float64()*25)) * time.Microsecond // up to 20 hours
		h.Add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, p := range []float64{0, 0.001, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1} {
		want := all[min(len(all)-1, max(0, int(math.Ceil(p*float64(len(all))))-1))]
		got := quantile(&h, p)
		if diff := math.Abs(float64(got-want)) / math.Max(float64(want), 1); diff > 0.04 {
			t.Errorf("quantile %v is %v, want %v", p, got, want)
		}
	}
	var sum time.Duration
	for _, d := range all {
		sum += d.Truncate(time.Microsecond)
	}
	if h.Count() != uint64(len(all)) || h.Sum() != sum {
		t.Errorf("count %d of %d, sum %v of %v", h.Count(), len(all), h.Sum(), sum)
	}
}

func TestHistogramBucketsHoldTheirDurations(t *testing.T) {
	t.Parallel()
	var last time.Duration
	for us := time.Duration(0); us < 1<<45; us = us*9/8 + 1 {
		var h Histogram
		h.Add(us * time.Microsecond)
		b := h.Buckets()
		if len(b) != 1 || b[0].Count != 1 {
			t.Fatalf("%d µs: buckets %+v", us, b)
		}
		longest := us >= 1<<43 // counts as that
		if d := us * time.Microsecond; !longest && (d < b[0].From || d >= b[0].To) {
			t.Errorf("%v is in the bucket from %v to %v", d, b[0].From, b[0].To)
		}
		if b[0].To < last {
			t.Errorf("bucket to %v after one to %v", b[0].To, last)
		}
		last = b[0].To
	}
}

func TestHistogramsMerge(t *testing.T) {
	t.Parallel()
	var a, b, both Histogram
	for i := range 1000 {
		d := time.Duration(i*i) * time.Microsecond
		both.Add(d)
		if i%3 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	sum := a.Clone()
	sum.Merge(&b)
	if !slices.Equal(sum.Buckets(), both.Buckets()) || sum.Count() != both.Count() || sum.Sum() != both.Sum() {
		t.Errorf("merged %v, want %v", sum.Buckets(), both.Buckets())
	}
	if a.Count() != 334 {
		t.Errorf("merging into a clone changed the original: %d", a.Count())
	}
	if n := both.Below(1 << 18 * time.Microsecond); n != 512 { // 511² < 2^18 = 512²
		t.Errorf("%d are less than 2^18 µs, want 512", n)
	}
	sum.Reset()
	if sum.Count() != 0 || sum.Sum() != 0 || quantile(sum, 0.5) != 0 || len(sum.Buckets()) != 0 {
		t.Errorf("after a reset: %+v", sum.Buckets())
	}
}

func TestHistogramAddDoesNotAllocate(t *testing.T) {
	var h Histogram
	add := func() {
		for i := range 100 {
			h.Add(time.Duration(i) * time.Millisecond)
		}
	}
	add()
	if n := testing.AllocsPerRun(10, add); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHistogramAdd(b *testing.B) {
	var h Histogram
	for i := range b.N {
		h.AddSpan(Instant(i & 0xffff))
	}
}

func quantile(h *Histogram, p float64) time.Duration {
	var at [1]time.Duration
	h.Quantiles(at[:], p)
	return at[0]
}
