package store

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/store/integrity"
)

// openDamaged opens a damaged store for reading. A log is read up to its first damage; the commits behind it are lost.
func (v *salvage) openDamaged(o Options) (err error) {
	o.ReadOnly, o.salvaging = true, true
	cut := cutFS{FS: o.FS, sizes: map[string]int64{}}
	o.FS = cut
	for {
		if v.from, err = Open(o); err == nil {
			if v.from.unguarded != nil {
				v.done.Lost = append(v.done.Lost, fmt.Sprintf("perhaps the newest commits: %v", v.from.unguarded))
			}
			return nil
		}
		var damage *DamageError
		if !errors.As(err, &damage) || !strings.HasSuffix(damage.Path, integrity.LogSuffix) {
			return err
		}
		if _, twice := cut.sizes[damage.Path]; twice {
			return err
		}
		size, readErr := integrity.SoundLogBytes(cut.FS, damage.Path)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		cut.sizes[damage.Path] = size
		v.done.Lost = append(v.done.Lost, fmt.Sprintf("the commits in %s after the first %d bytes: %v", damage.Path, size, damage.Err))
	}
}

// cutFS is a file system on which some files end early.
type cutFS struct {
	vfs.FS
	sizes map[string]int64
}

// Open implements vfs.FS.
func (c cutFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	if size, cut := c.sizes[name]; cut && err == nil {
		return &cutFile{File: f, rest: size, size: size}, nil
	}
	return f, err
}

// cutFile is a file that ends early, for reading.
type cutFile struct {
	vfs.File
	rest, size int64
}

// Read implements vfs.File.
func (f *cutFile) Read(p []byte) (int, error) {
	if f.rest == 0 {
		return 0, io.EOF
	}
	n, err := f.File.Read(p[:min(int64(len(p)), f.rest)])
	f.rest -= int64(n)
	return n, err
}

// ReadAt implements vfs.File.
func (f *cutFile) ReadAt(p []byte, at int64) (int, error) {
	return io.NewSectionReader(f.File, 0, f.size).ReadAt(p, at)
}
