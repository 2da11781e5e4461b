package engine

import (
	"sync/atomic"

	"broker/core"
)

// diskCheck is the state of the check for free disk space.
type diskCheck struct {
	busy atomic.Bool // a check is running; its goroutine owns the other fields
	full bool
}

// startDiskCheck checks the disk on a goroutine of its own: a hanging disk must not delay the handling of deadlines.
func (e *Engine) startDiskCheck() {
	if e.store == nil || e.opts.MinFreeDiskBytes == 0 || e.disk.busy.Swap(true) {
		return
	}
	go func() { // ends with the system call; on a hanging disk, it lasts until the process ends
		defer e.disk.busy.Store(false)
		e.checkDisk()
	}()
}

// checkDiskNow is checkDisk after a commit: between two checks by time, a fast producer could write more than the
// minimum. Only a check by time says that there is room again, so that jobs are not refused and taken in turns.
func (e *Engine) checkDiskNow() {
	if e.opts.MinFreeDiskBytes == 0 || e.disk.busy.Swap(true) {
		return
	}
	defer e.disk.busy.Store(false)
	if !e.disk.full {
		e.checkDisk()
	}
}

// checkDisk makes the machine refuse new jobs while the disk is nearly full.
func (e *Engine) checkDisk() {
	free, err := e.store.FreeBytes()
	if err != nil {
		return // some file systems do not report it; failing writes are noticed anyway
	}
	full := free < e.opts.MinFreeDiskBytes
	if full {
		e.onLowDisk(!e.disk.full)
	}
	if full == e.disk.full {
		return
	}
	if !full && e.opts.Replicated == nil {
		e.store.KeepReserve(e.opts.MinFreeDiskBytes) // a start may have used it
	}
	e.disk.full = full
	e.mu.Lock()
	if full {
		e.machine.Refuse(&core.DiskFullError{Free: free, Least: e.opts.MinFreeDiskBytes})
	} else {
		e.machine.Refuse(nil)
	}
	e.mu.Unlock()
	e.opts.Listener.DiskFull(full, free)
}
