package storetest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/store/atomicfile"
)

// Unpack puts the files of a .tar.gz archive into the folder dir, durably.
func Unpack(fsys vfs.FS, dir, archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", archive, err)
	}
	if err := atomicfile.MakeDir(fsys, dir); err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return atomicfile.SyncDir(fsys, dir)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", archive, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := write(fsys, fsys.PathJoin(dir, fsys.PathBase(h.Name)), r); err != nil {
			return err
		}
	}
}

func write(fsys vfs.FS, path string, from io.Reader) error {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close())
}
