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
// A table whose file is missing or has another size counts as empty.
func (v *salvage) openDamaged(o Options) error {
	patched, err := newPatchedFS(o.FS)
	if err != nil {
		return err
	}
	o.ReadOnly, o.salvaging, o.FS = true, true, patched
	for {
		if v.from, err = Open(o); err == nil {
			break
		}
		var damage *DamageError
		switch {
		case !errors.As(err, &damage):
			return err
		case v.loseTables(patched, o.Dir, err):
			o.emptied = true
		case !strings.HasSuffix(damage.Path, integrity.LogSuffix):
			return err
		default:
			if cutErr := v.cutLog(patched, damage); cutErr != nil {
				return errors.Join(err, cutErr)
			}
		}
	}
	if v.from.unguarded != nil {
		v.done.Lost = append(v.done.Lost, fmt.Sprintf("perhaps the newest commits: %v", v.from.unguarded))
	}
	if err := v.describeTables(); err != nil {
		return errors.Join(err, v.from.Close())
	}
	return nil
}

// cutLog makes a log end before its first damage.
func (v *salvage) cutLog(patched *patchedFS, damage *DamageError) error {
	if _, twice := patched.sizes[damage.Path]; twice {
		return errors.New("the log cannot be read up to its damage")
	}
	size, err := integrity.SoundLogBytes(patched, damage.Path)
	if err != nil {
		return err
	}
	patched.sizes[damage.Path] = size
	v.done.Lost = append(v.done.Lost,
		fmt.Sprintf("the commits in %s after the first %d bytes: %v", damage.Path, size, damage.Err))
	return nil
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
