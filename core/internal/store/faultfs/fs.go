package faultfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/store/atomicfile"
	"broker/core/internal/store/integrity"
)

// FS is the file system that Pebble uses. It passes everything through until a change of the store's folder fails. The
// failure trips the latch and blocks the caller; every later change blocks too. Errors elsewhere, for example in the
// folder of a backup, are returned.
type FS struct {
	vfs.FS
	Guard integrity.Guard

	latch *Latch
	dir   string
	free  uint64 // bytes; upper bound of the free space that is reported to Pebble

	guarding sync.WaitGroup // writes of GUARD in the background, after a log was created

	// opened is the last file opened for reading. At start, files are read one after another, so damage found then is
	// in this file.
	opened atomic.Pointer[string]
}

// New returns a file system for the store in dir. At most maxFree bytes of free space are reported to Pebble.
func New(base vfs.FS, dir string, latch *Latch, maxFree uint64) *FS {
	return &FS{FS: base, latch: latch, dir: dir, free: maxFree}
}

// LastOpened returns the path of the file that was last opened for reading, or an empty text.
func (s *FS) LastOpened() string {
	if p := s.opened.Load(); p != nil {
		return *p
	}
	return ""
}

// Inside reports whether name is in the store's folder.
func (s *FS) Inside(name string) bool { return s.PathDir(name) == s.dir || name == s.dir }

// WaitGuard waits until GUARD names all logs that were created.
func (s *FS) WaitGuard() { s.guarding.Wait() }

// change runs a change. A failure inside the store's folder trips the latch and blocks the caller; other failures are
// returned.
func (s *FS) change(verb, name string, run func() error) error {
	if !s.Inside(name) {
		return run()
	}
	if s.latch.Err() != nil {
		block()
	}
	err := run()
	if err != nil {
		_ = s.latch.Trip(fmt.Errorf("%s %s: %w", verb, name, err)) // callers get it from Err
		block()
	}
	return nil
}

// create is change for functions that open a file for writing.
func (s *FS) create(verb, name string, open func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	base := s.PathBase(name)
	log := strings.HasSuffix(base, integrity.LogSuffix)
	err := s.change(verb, name, func() (err error) {
		f, err = open()
		return err
	})
	if err != nil || !s.Inside(name) {
		return f, err
	}
	w := &writtenFile{File: f, fs: s, name: name}
	switch {
	case log:
		w.log = base
		s.Guard.LogCreated(base)
		s.guarding.Go(s.WriteGuard) // commits wait for the log but not for GUARD
	case strings.HasPrefix(base, integrity.ManifestPrefix):
		w.manifest = integrity.NewManifestSum(base)
	default:
		w.unnamed = verb != openDir
	}
	return w, nil
}

// WriteGuard writes GUARD.
func (s *FS) WriteGuard() {
	_ = s.change("guard", s.dir, func() error { return s.Guard.Write(s.FS, s.dir) }) // it fails only by blocking
}

// Unwrap implements vfs.FS.
func (s *FS) Unwrap() vfs.FS { return s.FS }

// GetDiskUsage implements vfs.FS. Pebble only uses the answer to limit how far a compaction is extended beyond what it
// needs.
func (s *FS) GetDiskUsage(name string) (vfs.DiskUsage, error) {
	usage, err := s.FS.GetDiskUsage(name)
	switch {
	case errors.Is(err, vfs.ErrUnsupported):
		return vfs.DiskUsage{AvailBytes: s.free, TotalBytes: s.free}, nil
	case err != nil:
		return usage, err
	}
	usage.AvailBytes = min(usage.AvailBytes, s.free)
	return usage, nil
}

// Create implements vfs.FS.
func (s *FS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return s.create("create", name, func() (vfs.File, error) { return s.FS.Create(name, c) })
}

// OpenReadWrite implements vfs.FS.
func (s *FS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return s.create("open", name, func() (vfs.File, error) { return s.FS.OpenReadWrite(name, c, o...) })
}

// ReuseForWrite implements vfs.FS.
func (s *FS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	s.Guard.LogRemoved(s.PathBase(old))
	return s.create("reuse", name, func() (vfs.File, error) { return s.FS.ReuseForWrite(old, name, c) })
}

// OpenDir implements vfs.FS. Folders are opened to be synced.
func (s *FS) OpenDir(name string) (vfs.File, error) {
	return s.create(openDir, name, func() (vfs.File, error) { return s.FS.OpenDir(name) })
}

// Link implements vfs.FS.
func (s *FS) Link(old, name string) error {
	return s.change("link", name, func() error { return s.FS.Link(old, name) })
}

// Rename implements vfs.FS.
func (s *FS) Rename(old, name string) error {
	return s.change("rename", name, func() error { return s.FS.Rename(old, name) })
}

// MkdirAll implements vfs.FS.
func (s *FS) MkdirAll(name string, perm os.FileMode) error {
	return s.change("make folder", name, func() error { return s.FS.MkdirAll(name, perm) })
}

// Remove implements vfs.FS. A file that cannot be removed is harmless, so an error does not trip the latch; but nothing
// is removed after another failure.
func (s *FS) Remove(name string) error {
	if s.Inside(name) && s.latch.Err() != nil {
		block()
	}
	if base := s.PathBase(name); s.Inside(name) && strings.HasSuffix(base, integrity.LogSuffix) {
		s.Guard.LogRemoved(base)
	}
	return s.FS.Remove(name)
}

// Lock implements vfs.FS. The store locks the folder itself, so that it can unlock it even if Pebble is blocked.
func (s *FS) Lock(string) (io.Closer, error) { return noLock{}, nil }

// noLock is given to Pebble.
type noLock struct{}

func (noLock) Close() error { return nil }

// openDir is the verb for folders, whose names need no sync.
const openDir = "open folder"

// writtenFile is a file of the folder that is open for writing.
type writtenFile struct {
	vfs.File
	fs   *FS
	name string

	// unnamed is true until the folder is synced. Another file may refer to this file next, and must not survive a
	// crash if this file does not. The names of logs and manifests become durable with GUARD.
	unnamed bool

	manifest *integrity.ManifestSum // of everything written, if this is a manifest
	log      string                 // its name, if this is a log
	written  int64                  // bytes
}

// Write implements vfs.File.
func (f *writtenFile) Write(p []byte) (n int, err error) {
	err = f.fs.change("write", f.name, func() error {
		if f.manifest != nil {
			f.manifest.Add(p) // first, since File may change p
		}
		n, err = f.File.Write(p)
		f.written += int64(n)
		return err
	})
	return n, err
}

// WriteAt implements vfs.File.
func (f *writtenFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.fs.change("write", f.name, func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

// Sync implements vfs.File.
func (f *writtenFile) Sync() error { return f.sync(f.File.Sync) }

// SyncData implements vfs.File.
func (f *writtenFile) SyncData() error { return f.sync(f.File.SyncData) }

// sync makes the file durable, the first time its name too. After the sync of a manifest, it writes GUARD.
func (f *writtenFile) sync(data func() error) error {
	return f.fs.change("sync", f.name, func() error {
		if err := data(); err != nil {
			return err
		}
		if f.unnamed {
			f.unnamed = false
			if err := atomicfile.SyncDir(f.fs.FS, f.fs.dir); err != nil {
				return err
			}
		}
		if f.manifest == nil {
			return nil
		}
		f.fs.Guard.ManifestSynced(*f.manifest)
		return f.fs.Guard.Write(f.fs.FS, f.fs.dir)
	})
}

// SyncTo implements vfs.File.
func (f *writtenFile) SyncTo(length int64) (full bool, err error) {
	err = f.fs.change("sync", f.name, func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Stat implements vfs.File. Pebble panics if it cannot get the size of a log that it reuses.
func (f *writtenFile) Stat() (info vfs.FileInfo, err error) {
	err = f.fs.change("stat", f.name, func() error {
		info, err = f.File.Stat()
		return err
	})
	return info, err
}

// Close implements vfs.File. Some file systems report a lost write only here.
func (f *writtenFile) Close() error {
	if f.log != "" {
		f.fs.Guard.LogClosed(f.log, f.written)
	}
	return f.fs.change("close", f.name, f.File.Close)
}
