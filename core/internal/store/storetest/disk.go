// Package storetest provides file systems for tests of stores, such as a disk in memory that can crash.
package storetest

import (
	"math/rand/v2"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// MemoryFS returns a file system in memory.
func MemoryFS() vfs.FS { return vfs.NewMem() }

// Disk is a file system that remembers which bytes were synced. A crash keeps the synced bytes and a random share of
// the others.
type Disk struct {
	mem *vfs.MemFS

	mu     sync.Mutex
	before func(write bool) error
}

// NewDisk makes an empty disk.
func NewDisk() *Disk { return &Disk{mem: vfs.NewCrashableMem()} }

// Before sets a function that is called before every operation on the file system, on the same goroutine. If it returns
// an error, the operation fails. It may be nil.
func (d *Disk) Before(fn func(write bool) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = fn
}

// FS returns the file system for a store.
func (d *Disk) FS() vfs.FS {
	return errorfs.Wrap(d.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		d.mu.Lock()
		fn := d.before
		d.mu.Unlock()
		if fn == nil {
			return nil
		}
		return fn(op.Kind.ReadOrWrite() == errorfs.OpIsWrite)
	}))
}

// Crash returns a disk with the content that a power failure now may leave: everything that was synced, and each
// block that was not synced with a probability of keepPercent. The disk itself is not changed.
func (d *Disk) Crash(rng *rand.Rand, keepPercent int) *Disk {
	return &Disk{mem: d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keepPercent, RNG: rng})}
}
