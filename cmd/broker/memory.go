package main

import (
	"os"
	"runtime/debug"
)

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
