package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/store/atomicfile"
	"broker/core/internal/store/integrity"
)

// Replace replaces the files of a store, which no process may have open, with the files of a complete copy. It may be
// interrupted and started again: the copy is not changed.
func Replace(dir, from string) error {
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range old {
		if e.IsDir() || !isStoreFile(e.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range files {
		if !isStoreFile(e.Name()) {
			continue
		}
		if err := os.Link(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("put %s in its place: %w", e.Name(), err)
		}
	}
	return atomicfile.SyncDir(vfs.Default, dir)
}

// isStoreFile reports whether a file is part of the state of a store. All files are, except the lock.
func isStoreFile(name string) bool {
	switch name {
	case integrity.FormatFile, integrity.GuardFile:
		return true
	}
	for _, prefix := range []string{integrity.ManifestPrefix, "marker.", "OPTIONS-", "CURRENT"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	for _, suffix := range []string{integrity.TableSuffix, integrity.LogSuffix, ".blob", ".dbtmp", ".new"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
