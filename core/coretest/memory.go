package coretest

import "runtime"

// LiveBytes is the memory of the process that is in use, garbage left out. It includes what other tests hold that run at the
// same time.
func LiveBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one had finalized
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no machine has so much
}
