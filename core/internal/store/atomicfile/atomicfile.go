// Package atomicfile replaces small files atomically: a crash leaves either the old content or the new content. It also
// makes folders durable.
package atomicfile

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// maxBytes limits the size of files that Read loads into memory. Manifests of copies are the largest.
const maxBytes = 1 << 30

// Read returns the content of a file.
func Read(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxBytes))
	return b, errors.Join(err, f.Close())
}

// Write creates or replaces a file in dir. It is durable on return.
func Write(fsys vfs.FS, dir, name, text string) error {
	path := fsys.PathJoin(dir, name)
	f, err := fsys.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(path+".new", path); err != nil {
		return err
	}
	return SyncDir(fsys, dir)
}

// SyncDir makes the names of the files in dir durable.
func SyncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// MakeDir creates a folder and its parents, and makes each of them durable. Only the owner has access: jobs can hold
// secrets.
func MakeDir(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(dir); err == nil {
		return nil
	}
	parent := fsys.PathDir(dir)
	if parent != dir {
		if err := MakeDir(fsys, parent); err != nil {
			return err
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return SyncDir(fsys, parent)
}
