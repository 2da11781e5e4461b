package coretest

import "runtime"

// LiveBytes returns the live heap of the process. It includes memory of tests that run at the same time.
func LiveBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees objects that the first run finalized
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // fits
}
