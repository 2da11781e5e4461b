package engine

import (
	"sync/atomic"

	"broker/core"
)

// diskCheck is the state of the look at the free space of the disk.
type diskCheck struct {
	busy atomic.Bool // a look is under way; its goroutine uses the rest
	full bool
}

// startDiskCheck looks at the disk on a goroutine of its own: one that hangs must not keep deadlines from being handled.
func (e *Engine) startDiskCheck() {
	if e.store == nil || e.opts.MinFreeDiskBytes == 0 || e.disk.busy.Swap(true) {
		return
	}
	go func() { // ends with the system call; a disk that hangs keeps it until the process ends
		defer e.disk.busy.Store(false)
		e.checkDisk()
	}()
}

// checkDisk makes the machine refuse new jobs while the disk is nearly full.
func (e *Engine) checkDisk() {
	free, err := e.store.FreeBytes()
	if err != nil {
		return // some file systems cannot tell; a failing write is noticed anyway
	}
	full := free < e.opts.MinFreeDiskBytes
	if full {
		e.onLowDisk(!e.disk.full)
	}
	if full == e.disk.full {
		return
	}
	e.disk.full = full
	e.mu.Lock()
	if full {
		e.machine.Refuse(core.ErrDiskFull)
	} else {
		e.machine.Refuse(nil)
	}
	e.mu.Unlock()
	e.opts.Listener.DiskFull(full, free)
}
