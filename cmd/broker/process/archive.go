package process

import (
	"os"
	"path/filepath"

	"broker/core"
	"broker/core/archive"
	"broker/core/engine"
)

// scratchFolder is the folder for copies of the store for the archive. It is inside the data folder, which is writable
// and on the same file system as the store.
const scratchFolder = "archiving"

// newArchive makes the writer that ships the commits of an engine; nil: no archive.
func (t *term) newArchive() engine.Shipper {
	a := t.config.Archive
	scratch := filepath.Join(t.config.Data, scratchFolder)
	if a.Dir == "" {
		_ = os.RemoveAll(scratch) // an earlier run may have left a copy
		return nil
	}
	t.archive = archive.New(archive.Options{
		Dir: a.Dir, Scratch: scratch,
		Every: a.Every, BaseEvery: a.BaseEvery, Keep: a.Keep, MaxQueueBytes: int(a.MaxQueue),
		Clock: t.systemClock(), Log: nodeLog(t.log),
	})
	return t.archive
}

// ArchiveStatus is the state of the archive; nil: no archive.
func (t *term) ArchiveStatus() *core.Archive {
	if t.archive == nil {
		return nil
	}
	s := t.archive.Status()
	return &s
}
