// Package storetest has a disk in memory that can crash.
package storetest

import (
	"math/rand/v2"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Disk is a file system that remembers which bytes were synced. A crash keeps those and a random share of the rest.
type Disk struct {
	mem *vfs.MemFS

	mu     sync.Mutex
	before func(write bool) error
}

// NewDisk makes an empty disk.
func NewDisk() *Disk { return &Disk{mem: vfs.NewCrashableMem()} }

// Before sets what is called before every operation on the file system, from whatever goroutine does it; an error makes
// the operation fail. Nil: nothing.
func (d *Disk) Before(fn func(write bool) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = fn
}

// FS is the disk as a store sees it.
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

// Crash is what the disk may hold after the power went away now: all that was synced, and of what was not each block
// with a chance of keepPercent in a hundred. The disk itself goes on.
func (d *Disk) Crash(rng *rand.Rand, keepPercent int) *Disk {
	return &Disk{mem: d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keepPercent, RNG: rng})}
}
