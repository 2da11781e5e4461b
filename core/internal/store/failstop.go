package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failStop is the file system that Pebble sees: it lets through everything until something fails that changes the
// store's folder. That blows the fuse, and the goroutine that met it is parked: Pebble never sees the error. From then
// on nothing changes the folder any more. Elsewhere, as in the folder of a backup, errors are returned as they are.
type failStop struct {
	vfs.FS
	fuse  *fuse
	dir   string
	guard guard
	room  uint64 // bytes; what Pebble is told to be free at the most

	guarding sync.WaitGroup // new logs

	// opened is the file opened last for reading: during the start, when files are read one after another, the one that
	// is to blame for damage.
	opened atomic.Pointer[string]
}

func (s *failStop) inside(name string) bool { return s.PathDir(name) == s.dir || name == s.dir }

// must passes on the result of a change that is allowed to fail outside of the folder only.
func (s *failStop) must(verb, name string, change func() error) error {
	if !s.inside(name) {
		return change()
	}
	if s.fuse.err() != nil {
		park()
	}
	err := change()
	if err != nil {
		_ = s.fuse.blow(fmt.Errorf("%s %s: %w", verb, name, err)) // everybody reads it from the fuse
		park()
	}
	return nil
}

// create is must for what opens a file for writing.
func (s *failStop) create(verb, name string, open func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	base := s.PathBase(name)
	log := strings.HasSuffix(base, logSuffix)
	err := s.must(verb, name, func() (err error) {
		f, err = open()
		return err
	})
	if err != nil || !s.inside(name) {
		return f, err
	}
	w := &failStopFile{File: f, fs: s, name: name}
	switch {
	case log:
		w.log = base
		s.guard.madeLog(base)
		s.guarding.Go(func() { _ = s.writeGuard() }) // commits wait for the log, and not for this; it returns nil
	case strings.HasPrefix(base, manifestPrefix):
		w.manifest = &manifestSum{name: base}
	default:
		w.unnamed = verb != openDir
	}
	return w, nil
}

// writeGuard writes GUARD anew.
func (s *failStop) writeGuard() error {
	return s.must("guard", s.dir, func() error { return s.guard.write(s.FS, s.dir) })
}

// Unwrap implements vfs.FS.
func (s *failStop) Unwrap() vfs.FS { return s.FS }

// GetDiskUsage implements vfs.FS. All that Pebble does with the answer is to bound by it what merges take in beyond what
// they must.
func (s *failStop) GetDiskUsage(name string) (vfs.DiskUsage, error) {
	usage, err := s.FS.GetDiskUsage(name)
	switch {
	case errors.Is(err, vfs.ErrUnsupported):
		return vfs.DiskUsage{AvailBytes: s.room, TotalBytes: s.room}, nil
	case err != nil:
		return usage, err
	}
	usage.AvailBytes = min(usage.AvailBytes, s.room)
	return usage, nil
}

// Create implements vfs.FS.
func (s *failStop) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return s.create("create", name, func() (vfs.File, error) { return s.FS.Create(name, c) })
}

// OpenReadWrite implements vfs.FS.
func (s *failStop) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return s.create("open", name, func() (vfs.File, error) { return s.FS.OpenReadWrite(name, c, o...) })
}

// ReuseForWrite implements vfs.FS.
func (s *failStop) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	s.guard.removedLog(s.PathBase(old))
	return s.create("reuse", name, func() (vfs.File, error) { return s.FS.ReuseForWrite(old, name, c) })
}

// OpenDir implements vfs.FS. Folders are opened to be synced.
func (s *failStop) OpenDir(name string) (vfs.File, error) {
	return s.create(openDir, name, func() (vfs.File, error) { return s.FS.OpenDir(name) })
}

// Link implements vfs.FS.
func (s *failStop) Link(old, name string) error {
	return s.must("link", name, func() error { return s.FS.Link(old, name) })
}

// Rename implements vfs.FS.
func (s *failStop) Rename(old, name string) error {
	return s.must("rename", name, func() error { return s.FS.Rename(old, name) })
}

// MkdirAll implements vfs.FS.
func (s *failStop) MkdirAll(name string, perm os.FileMode) error {
	return s.must("make folder", name, func() error { return s.FS.MkdirAll(name, perm) })
}

// Remove implements vfs.FS. A file that stays by mistake is harmless, so an error is no reason to stop; but nothing is
// removed any more once something else has failed.
func (s *failStop) Remove(name string) error {
	if s.inside(name) && s.fuse.err() != nil {
		park()
	}
	if base := s.PathBase(name); s.inside(name) && strings.HasSuffix(base, logSuffix) {
		s.guard.removedLog(base)
	}
	return s.FS.Remove(name)
}

// Lock implements vfs.FS. Open has locked the folder before Pebble does, and unlocks it even if Pebble is stuck.
func (s *failStop) Lock(string) (io.Closer, error) { return noLock{}, nil }

// noLock is what Pebble may close.
type noLock struct{}

func (noLock) Close() error { return nil }

// openDir is the verb for folders, which have no name of their own to lose.
const openDir = "open folder"

// failStopFile is a file of the folder that may be written.
type failStopFile struct {
	vfs.File
	fs   *failStop
	name string

	// unnamed until the folder was synced for the first time: what is written next may name the file, and must not be all
	// that survives a crash. The names of logs and manifests are made durable with GUARD.
	unnamed bool

	manifest *manifestSum // of what was written, if this is a manifest
	log      string       // its name, if this is a log
	written  int64        // bytes
}

// Write implements vfs.File.
func (f *failStopFile) Write(p []byte) (n int, err error) {
	err = f.fs.must("write", f.name, func() error {
		if f.manifest != nil {
			f.manifest.add(p) // before File may change p
		}
		n, err = f.File.Write(p)
		f.written += int64(n)
		return err
	})
	return n, err
}

// WriteAt implements vfs.File.
func (f *failStopFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fs.must("write", f.name, func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

// Sync implements vfs.File.
func (f *failStopFile) Sync() error { return f.sync(f.File.Sync) }

// SyncData implements vfs.File.
func (f *failStopFile) SyncData() error { return f.sync(f.File.SyncData) }

// sync makes the file durable, with the first one its name too, and has a manifest guarded.
func (f *failStopFile) sync(data func() error) error {
	return f.fs.must("sync", f.name, func() error {
		if err := data(); err != nil {
			return err
		}
		if f.unnamed {
			f.unnamed = false
			if err := syncDir(f.fs.FS, f.fs.dir); err != nil {
				return err
			}
		}
		if f.manifest == nil {
			return nil
		}
		f.fs.guard.syncedManifest(*f.manifest)
		return f.fs.guard.write(f.fs.FS, f.fs.dir)
	})
}

// SyncTo implements vfs.File.
func (f *failStopFile) SyncTo(length int64) (full bool, err error) {
	err = f.fs.must("sync", f.name, func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Stat implements vfs.File. Pebble asks a log that it reuses for its size, at a place where it can't bear an error.
func (f *failStopFile) Stat() (info vfs.FileInfo, err error) {
	err = f.fs.must("stat", f.name, func() error {
		info, err = f.File.Stat()
		return err
	})
	return info, err
}

// Close implements vfs.File. Some file systems tell only here that a write was lost.
func (f *failStopFile) Close() error {
	if f.log != "" {
		f.fs.guard.closedLog(f.log, f.written)
	}
	return f.fs.must("close", f.name, f.File.Close)
}
