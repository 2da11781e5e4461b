package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"broker/core/internal/store/integrity"
)

// Replace puts the files of a complete copy in the place of those of a store that nobody has open. It may be interrupted
// and begun again: the copy stays as it is.
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
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// isStoreFile reports whether a name is that of a file which belongs to one state of a store: all but the lock.
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
