package faultfs

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Reads may fail too. A caller that reads a job gets the error. But when Pebble reads on its own, for a compaction, it
// panics on some errors, on a goroutine where no caller can recover. So damage and failed reads there are final, like
// failed writes.

// Open implements vfs.FS.
func (s *FS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := s.FS.Open(name, o...)
	if !s.Inside(name) {
		return f, err
	}
	s.opened.Store(&name)
	if err != nil {
		s.latch.ReadFailed(fmt.Errorf("open %s: %w", name, err))
		return nil, err
	}
	return &readFile{File: f, fs: s, name: name}, nil
}

// readFile is a file of the folder that is open for reading.
type readFile struct {
	vfs.File
	fs   *FS
	name string
}

// ReadAt implements vfs.File. Pebble reads tables with it, and never beyond their end.
func (f *readFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if err != nil {
		f.fs.latch.ReadFailed(fmt.Errorf("read %s: %w", f.name, err))
	}
	return n, err
}

// ReadFailed trips the latch and does not return if the reader is one of Pebble's own goroutines.
func (l *Latch) ReadFailed(err error) {
	if inBackground() {
		_ = l.Trip(err) // callers get it from Err
		block()
	}
}

// storePackages is the import path that the names of all functions of the store begin with, its tests included.
const storePackages = "broker/core/internal/store"

// inBackground reports whether this goroutine is one of Pebble's: no function of the store is on its stack, except
// those that Pebble called last. Slow, so only called after a failure.
func inBackground() bool {
	var pcs [256]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	top := true
	for {
		frame, more := frames.Next()
		ours := strings.HasPrefix(frame.Function, storePackages)
		if ours && !top {
			return false
		}
		top = top && ours
		if !more {
			return true
		}
	}
}
