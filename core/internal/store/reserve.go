package store

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// reserveFile takes the space that a start needs. When something has filled the disk, a start gives the space back:
// otherwise no store could be opened there, and no worker could take the jobs away that fill it.
const reserveFile = "RESERVE"

// mostReserve is what a start writes: two write buffers that were in the log only, a log and a manifest, in bytes.
const mostReserve = 2*defaultMemTableBytes + 16<<20

// reserveFor is the size of the reserve where so many bytes are to stay free, at most mostReserve.
func reserveFor(minFree uint64) uint64 { return min(minFree/2, mostReserve) }

// useReserve removes the reserve if less than its size is free. It needs no space, and is called before Pebble writes.
func (s *Store) useReserve(minFree uint64) {
	bytes := reserveFor(minFree)
	free, err := s.FreeBytes()
	if bytes == 0 || err != nil || free >= bytes {
		return
	}
	switch err := s.disk.Remove(s.disk.PathJoin(s.dir, reserveFile)); {
	case err == nil:
		s.warn(fmt.Sprintf("the disk is full (%d bytes are free): this start uses the space of %s", free, reserveFile))
	case !errors.Is(err, fs.ErrNotExist):
		s.warn(fmt.Sprintf("the space of %s could not be freed: %v", reserveFile, err))
	}
}

// KeepReserve makes the reserve if it is missing and minFree bytes, with some room, stay free beside it. It is not part
// of the store: where the file system cannot set space aside, there is none.
func (s *Store) KeepReserve(minFree uint64) {
	bytes := reserveFor(minFree)
	path := s.disk.PathJoin(s.dir, reserveFile)
	free, err := s.FreeBytes()
	if bytes == 0 || err != nil || free < minFree+2*bytes {
		return
	}
	if _, err := s.disk.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := makeReserve(s.disk, path, int64(bytes)); err != nil {
		s.warn(fmt.Sprintf("%s has no space set aside: %v", reserveFile, err))
	}
}

func makeReserve(disk vfs.FS, path string, bytes int64) error {
	f, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	err = f.Preallocate(0, bytes)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = disk.Remove(path) // it reserves nothing
	}
	return err
}
