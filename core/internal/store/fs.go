package store

import "github.com/cockroachdb/pebble/v2/vfs"

// FS is the file system that a store stands on.
type FS = vfs.FS

// MemoryFS is a file system that lives and dies with the process.
func MemoryFS() FS { return vfs.NewMem() }
