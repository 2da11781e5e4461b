package coretest

import (
	"runtime"

	"broker/core/internal/store/storetest"
)

// MemoryFS returns a file system in memory for a store.
var MemoryFS = storetest.MemoryFS

// LiveBytes returns the live heap of the process. It includes memory of tests that run at the same time.
func LiveBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees objects that the first run finalized
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Disk is a file system in memory that can crash: storetest.Disk.
type Disk = storetest.Disk

// NewDisk makes an empty disk.
var NewDisk = storetest.NewDisk
