package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// spareProcessors are what Go gets beyond the processors there are. An event loop keeps its own through each system call,
// and is in one most of the time: without spare ones the committer waits for a loop to pause, and all clients wait for
// the committer. The kernel shares the machine out better than that.
const spareProcessors = 2

// gearmanNoJobDelay is several round trips of a client on the same machine, and too short for anybody to notice.
const gearmanNoJobDelay = 500 * time.Microsecond

// processors is how many there are without the spare ones, which Go gets at the first call unless the environment has its
// own will.
var processors = sync.OnceValue(func() int {
	n := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + spareProcessors)
	}
	return n
})

// Go's collector runs when garbage has grown in proportion to what lives. That is wrong for a broker at both ends: one
// that is drained as fast as it is filled has next to nothing alive and would collect many times a second, and one with
// millions of waiting jobs would let hundreds of megabytes of garbage lie, though collecting is cheap: its index has no
// pointers to follow. So the proportion is set after each collection to what allows garbageBytes.
const (
	garbageBytes  = 48 << 20
	minLiveBytes  = 4 << 20 // what Go itself takes for the least
	minGCPercent  = 5       // of what lives: more collections than that would be felt
	heapLiveBytes = "/gc/heap/live:bytes"
)

// tuneGC sets the collector up, once, unless the environment has its own will.
var tuneGC = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		afterCollections(setGCPercent)
	}
})

// afterCollections calls fn now and after each collection.
func afterCollections(fn func()) {
	type sentinel struct{ fn func() }
	runtime.SetFinalizer(&sentinel{fn}, func(s *sentinel) { afterCollections(s.fn) })
	fn()
}

func setGCPercent() {
	live := []metrics.Sample{{Name: heapLiveBytes}}
	metrics.Read(live)
	debug.SetGCPercent(gcPercent(live[0].Value.Uint64()))
}

// proportion is the percentage by which a heap may grow before it is collected.
func gcPercent(live uint64) int {
	return int(max(minGCPercent, 100*garbageBytes/max(live, minLiveBytes))) //nolint:gosec // at most 1200
}
