package store

import "github.com/cockroachdb/pebble/v2/vfs"

// FS is the file system of a store.
type FS = vfs.FS

// MemoryFS returns a file system in memory, for tests. The program does not use it, so the linker leaves it out.
func MemoryFS() FS { return vfs.NewMem() }
