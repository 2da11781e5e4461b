package store

import "github.com/cockroachdb/pebble/v2/vfs"

// FS is the file system of a store.
type FS = vfs.FS

// MemoryFS returns a file system in memory.
func MemoryFS() FS { return vfs.NewMem() }
