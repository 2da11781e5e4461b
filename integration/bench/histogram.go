package main

import (
	"math/bits"
	"slices"
	"time"
)

// histogram counts durations in buckets about three per cent wide, without allocating.
type histogram struct {
	counts [64 * 32]uint32
	total  uint64
}

func (h *histogram) add(ns int64) {
	h.counts[bucket(uint64(max(ns, 1)))]++
	h.total++
}

// bucket keeps the leading one bit and the next five bits.
func bucket(v uint64) int {
	exp := bits.Len64(v) - 1
	if exp < 5 {
		return int(v)
	}
	return exp<<5 | int(v>>(exp-5))&31
}

func bucketValue(i int) uint64 {
	exp := i >> 5
	if exp < 5 {
		return uint64(i)
	}
	return (32 | uint64(i&31)) << (exp - 5)
}

func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.total))
	var seen uint64
	for i, n := range h.counts {
		seen += uint64(n)
		if seen > rank {
			return time.Duration(bucketValue(i))
		}
	}
	return 0
}

// longest is the largest value; zero: there is none.
func (h *histogram) longest() time.Duration { return h.quantile(1 - 0.5/float64(max(h.total, 1))) }

// clock records when each request in flight was sent; replies arrive in the same order.
type clock struct {
	sent []int64
	next int // index of the oldest
	n    int
}

func newClock(inFlight int) clock { return clock{sent: make([]int64, inFlight)} }

func (c *clock) start(now int64) {
	c.sent[(c.next+c.n)%len(c.sent)] = now
	c.n++
}

func (c *clock) stop(now int64) int64 {
	took := now - c.sent[c.next]
	c.next = (c.next + 1) % len(c.sent)
	c.n--
	return took
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
