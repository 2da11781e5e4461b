package storetest

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Room is a file system with a given amount of free space.
type Room struct {
	vfs.FS
	Free atomic.Uint64 // bytes
}

// NewRoom returns a disk with the given number of free bytes.
func NewRoom(d *Disk, free uint64) *Room {
	r := &Room{FS: d.FS()}
	r.Free.Store(free)
	return r
}

// GetDiskUsage implements vfs.FS.
func (r *Room) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: r.Free.Load(), TotalBytes: 1 << 40}, nil
}

// Unwrap implements vfs.FS.
func (r *Room) Unwrap() vfs.FS { return r.FS }
