package main

import (
	"runtime"
	"testing"
)

// What is garbage is not the memory of jobs, and neither is what the program needed at its start. Not parallel: it
// measures the memory of the process.
func TestHeapGrowthIsOfWhatIsInUse(t *testing.T) {
	const limit = 64 << 20
	h := newHeapGrowth()
	for range 8 {
		garbage := make([]byte, limit/4)
		garbage[0] = 1
	}
	if h.above(limit) {
		t.Error("garbage counts")
	}
	used := make([]byte, 2*limit)
	if !h.above(limit) {
		t.Error("what is in use does not count")
	}
	runtime.KeepAlive(used)
}
