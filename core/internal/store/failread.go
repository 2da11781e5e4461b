package store

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Reading may fail too. Whoever asked for a job gets the error; but where Pebble reads of its own accord, to merge
// tables, it panics on some errors, on a goroutine on which nobody can recover. So damage and failed reads there are
// final like failed writes are, and are met in the same way.

// Open implements vfs.FS.
func (s *failStop) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := s.FS.Open(name, o...)
	if !s.inside(name) {
		return f, err
	}
	s.opened.Store(&name)
	if err != nil {
		s.readFailed("open", name, err)
		return nil, err
	}
	return &failStopReader{File: f, fs: s, name: name}, nil
}

// readFailed does not return if it was Pebble that wanted to read.
func (s *failStop) readFailed(verb, name string, err error) {
	if background() {
		_ = s.fuse.blow(fmt.Errorf("%s %s: %w", verb, name, err)) // everybody reads it from the fuse
		park()
	}
}

// failStopReader is a file of the folder that is read.
type failStopReader struct {
	vfs.File
	fs   *failStop
	name string
}

// ReadAt implements vfs.File. Tables are read by it, and never behind their end.
func (f *failStopReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if err != nil {
		f.fs.readFailed("read", f.name, err)
	}
	return n, err
}

// foundDamage is told of blocks whose checksum is wrong, by whoever reads them, before the error goes on its way.
func (s *Store) foundDamage(i pebble.DataCorruptionInfo) {
	s.damaged.Store(&i.Path)
	if background() {
		_ = s.fuse.blow(&DamageError{Path: i.Path, What: "merge tables", Err: i.Details}) // likewise
		park()
	}
}

// background reports whether this goroutine is one of Pebble's: it came here through no function of ours but those that
// Pebble has called last. Slow, and only asked when something has gone wrong.
func background() bool {
	ours := reflect.TypeFor[Store]().PkgPath() + "."
	var pcs [256]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	top := true
	for {
		frame, more := frames.Next()
		mine := strings.HasPrefix(frame.Function, ours)
		if mine && !top {
			return false
		}
		top = top && mine
		if !more {
			return true
		}
	}
}
