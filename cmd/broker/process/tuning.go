package process

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// spareProcessors is the number by which GOMAXPROCS exceeds the number of processors. An event loop keeps its P during
// system calls, where it spends most of its time. Without spare Ps the committer would wait until a loop pauses, and
// all clients wait for the committer. The kernel schedules the threads better.
const spareProcessors = 2

// gearmanNoJobDelay is as long as several round trips of a client on the same machine, but too short for people to
// notice.
const gearmanNoJobDelay = 500 * time.Microsecond

// processors is the number of processors without the spare ones. The first call raises GOMAXPROCS, unless the
// environment sets it.
var processors = sync.OnceValue(func() int {
	n := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + spareProcessors)
	}
	return n
})

// Go's garbage collector runs when the heap has grown by a percentage of the live bytes. That does not fit a broker.
// With empty queues it has almost no live bytes and would collect many times a second. With millions of waiting jobs it
// would keep hundreds of megabytes of garbage, although a collection is cheap because its index contains no pointers.
// So each collection sets the percentage that allows garbageBytes of garbage.
const (
	garbageBytes  = 48 << 20
	minLiveBytes  = 4 << 20 // the minimum heap that Go assumes
	minGCPercent  = 5       // a lower value would cause too many collections
	heapLiveBytes = "/gc/heap/live:bytes"
)

// tuneGC configures the garbage collector once, unless the environment sets GOGC.
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

// gcPercent is the percentage by which a heap may grow before it is collected.
func gcPercent(live uint64) int {
	return int(max(minGCPercent, 100*garbageBytes/max(live, minLiveBytes)))
}
