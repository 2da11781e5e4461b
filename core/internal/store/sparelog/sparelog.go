// Package sparelog keeps one log file ready in the folder of a store, filled with zeros. A sync of a file that grows has to
// write the metadata of the file too; a sync within a file that was written before does not, and takes a third less time.
// Pebble reuses its own logs for that reason, but begins with new ones at each start, and needs several until the first can
// be reused.
//
// The spare is one file, SPARE, of the size of a log. It is complete or it is not there: it is written as SPARE.new, synced
// and renamed. When Pebble creates a log, the spare is renamed to it; Pebble overwrites it from the beginning, and takes the
// zeros behind the last record for the end of the log. A missing spare costs time only, so no error here is one of the
// store.
package sparelog

import (
	"errors"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/store/atomicfile"
	"broker/core/internal/store/integrity"
)

// File is the name of a complete spare. Pebble ignores it.
const File = "SPARE"

const partialFile = File + ".new"

// chunkBytes is how much is written between two syncs, so that the log of commits waits for little.
const chunkBytes = 1 << 20

// FS gives spares to whoever creates a log in dir.
type FS struct {
	vfs.FS
	dir  string
	size int64

	filling sync.Mutex // held while a spare is written

	mu    sync.Mutex // guards ready
	ready bool
	used  chan struct{} // a spare was used; capacity 1
}

// New returns a file system for the store in dir, with spares of size bytes.
func New(base vfs.FS, dir string, size int64) *FS {
	return &FS{FS: base, dir: dir, size: size, used: make(chan struct{}, 1)}
}

// Unwrap implements vfs.FS.
func (s *FS) Unwrap() vfs.FS { return s.FS }

// Create implements vfs.FS.
func (s *FS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, integrity.LogSuffix) && s.PathDir(name) == s.dir && s.take() {
		return s.ReuseForWrite(s.path(File), name, c)
	}
	return s.FS.Create(name, c)
}

func (s *FS) path(name string) string { return s.PathJoin(s.dir, name) }

// take reports whether there is a spare, which is the caller's then.
func (s *FS) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.ready
	s.ready = false
	select {
	case s.used <- struct{}{}:
	default:
	}
	return taken
}

// Find takes over the spare of an earlier run. It removes files that are no complete spares.
func (s *FS) Find() {
	_ = s.Remove(s.path(partialFile)) // it is there after a crash only
	info, err := s.Stat(s.path(File))
	switch {
	case err != nil:
	case info.Size() != s.size: // of a broker with other settings
		_ = s.Remove(s.path(File)) // if it stays, the next one replaces it
	default:
		s.mu.Lock()
		s.ready = true
		s.mu.Unlock()
	}
}

// Stop ends the writing of spares: the store is being closed, or has failed, and nothing may change its folder any more.
type Stop struct{ Closing, Failed <-chan struct{} }

func (s Stop) requested() bool {
	select {
	case <-s.Closing:
		return true
	case <-s.Failed:
		return true
	default:
		return false
	}
}

// Keep writes a spare whenever there is none, until stop.
func (s *FS) Keep(stop Stop) {
	for {
		_ = s.Prepare(stop) // tried again after the next log
		select {
		case <-stop.Closing:
			return
		case <-stop.Failed:
			return
		case <-s.used:
		}
	}
}

// minFree is how many spares must fit on the disk, so that the last of its space is left for what must be written.
const minFree = 16

// Prepare writes a spare if there is none. It gives up at stop.
func (s *FS) Prepare(stop Stop) error {
	s.filling.Lock()
	defer s.filling.Unlock()
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	if ready {
		return nil
	}
	if usage, err := s.GetDiskUsage(s.dir); err == nil && usage.AvailBytes < minFree*uint64(s.size) {
		return errNearlyFull
	}
	if err := s.fill(stop); err != nil {
		if stop.requested() {
			return err // the next Find removes what is there
		}
		return errors.Join(err, s.Remove(s.path(partialFile)))
	}
	if err := s.Rename(s.path(partialFile), s.path(File)); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(s.FS, s.dir); err != nil {
		return err
	}
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	return nil
}

// Reasons why there is no spare.
var (
	errStopped    = errors.New("store is closing, or has failed")
	errNearlyFull = errors.New("disk is nearly full")
)

// fill writes the zeros. The blocks of the file are durable afterwards, so that later syncs write data only.
func (s *FS) fill(stop Stop) error {
	f, err := s.FS.Create(s.path(partialFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	// Another buffer each time: some file systems change what they are given.
	for left := s.size; err == nil && left > 0; left -= chunkBytes {
		if stop.requested() {
			return errors.Join(errStopped, f.Close())
		}
		if _, err = f.Write(make([]byte, min(left, chunkBytes))); err == nil {
			err = f.SyncData()
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
