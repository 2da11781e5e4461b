package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// spareProcessors are what Go gets beyond the processors there are. An event loop keeps its own through each system call,
// and is in one most of the time: without spare ones the committer waits for a loop to pause, and all clients wait for
// the committer. The kernel shares the machine out better than that.
const spareProcessors = 2

// processors is how many there are without the spare ones, which Go gets at the first call unless the environment has its
// own will.
var processors = sync.OnceValue(func() int {
	n := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + spareProcessors)
	}
	return n
})

// A broker that is drained as fast as it is filled has a tiny live heap, and by Go's rule of proportion the collector
// would run many times a second to reclaim a few megabytes each. Ballast is address space that is never touched: it
// costs no memory, but counts as live, so that a collection comes after about ballastBytes·gcPercent/100 of garbage at
// the earliest. The lower percentage keeps the garbage of a large heap (deep queues) at half of what lives.
const (
	ballastBytes = 96 << 20
	gcPercent    = 50
)

// ballast is kept alive by being global.
var ballast []byte //nolint:unused // being kept is its use

// steadyCollector sets the collector up, unless the environment has its own will.
func steadyCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	ballast = make([]byte, ballastBytes)
	debug.SetGCPercent(gcPercent)
}
