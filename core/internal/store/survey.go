package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatVersion is the meaning of keys and records as doc.go has it.
const formatVersion = 1

// Files of the folder that are ours.
const (
	formatFile = "FORMAT"
	formatText = "broker store, format "
	lockFile   = "LOCK"
)

// Names of Pebble's files. Markers are empty files whose names end with what they say.
const (
	manifestMarker = "marker.manifest."
	formatMarker   = "marker.format-version."
	tableSuffix    = ".sst"
	logSuffix      = ".log"
)

// survey is what a look at the folder's files tells before Pebble is let in.
type survey struct {
	format   bool   // FORMAT is there
	manifest string // the manifest that the marker names
	tables   int
	logs     int
}

// look takes the survey and refuses what is newer than this code, and what is plainly not whole: Pebble would take a
// folder without its marker for a new one.
func look(fsys vfs.FS, dir string) (survey, error) {
	var v survey
	files, err := fsys.List(dir)
	if err != nil {
		return v, fmt.Errorf("list store folder %s: %w", dir, err)
	}
	slices.Sort(files) // of several markers the last one counts
	for _, name := range files {
		switch {
		case name == formatFile:
			v.format = true
			if err := checkFormatFile(fsys, fsys.PathJoin(dir, name)); err != nil {
				return v, err
			}
		case strings.HasPrefix(name, manifestMarker):
			v.manifest = markerValue(name)
		case strings.HasPrefix(name, formatMarker):
			n, err := strconv.ParseUint(markerValue(name), 10, 64)
			if err == nil && pebble.FormatMajorVersion(n) > pebble.FormatNewest {
				return v, fmt.Errorf("store folder %s, tables of format %d: %w", dir, n, ErrNewerFormat)
			}
		case strings.HasSuffix(name, tableSuffix):
			v.tables++
		case strings.HasSuffix(name, logSuffix):
			v.logs++
		}
	}
	return v, v.whole(fsys, dir, files)
}

// whole finds files that must be there because others are.
func (v *survey) whole(fsys vfs.FS, dir string, files []string) error {
	missing := func(name, why string) error {
		return &DamageError{Path: fsys.PathJoin(dir, name), What: "look at the folder", Err: errors.New(why)}
	}
	switch {
	case v.manifest == "" && (v.format || v.tables+v.logs > 0):
		return missing(manifestMarker+"*", "other files of the store are there")
	case v.manifest != "" && !slices.Contains(files, v.manifest):
		return missing(v.manifest, "it lists the tables of the store")
	case v.format && v.logs == 0:
		return missing("*"+logSuffix, "the newest commits are in it")
	}
	return nil
}

// markerValue is the end of a marker's name, behind its number.
func markerValue(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func checkFormatFile(fsys vfs.FS, path string) error {
	f, err := fsys.Open(path)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(string(text)), formatText)
	n, err := strconv.ParseUint(rest, 10, 64)
	if !ok || err != nil {
		return &DamageError{Path: path, What: "read the format", Err: fmt.Errorf("it says %.40q", text)}
	}
	return checkFormat(n)
}

// checkFormat judges a format version found in the store.
func checkFormat(n uint64) error {
	if n > formatVersion {
		return fmt.Errorf("store of format %d, this broker knows %d: %w", n, formatVersion, ErrNewerFormat)
	}
	return nil
}

// writeFormatFile makes FORMAT, whole or not at all.
func writeFormatFile(fsys vfs.FS, dir string) error {
	path := fsys.PathJoin(dir, formatFile)
	f, err := fsys.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s%d\n", formatText, formatVersion)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(fsys, dir)
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDir makes a folder and those above it, each of them durable. Nobody else may look: jobs can hold secrets.
func makeDir(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(dir); err == nil {
		return nil
	}
	parent := fsys.PathDir(dir)
	if parent != dir {
		if err := makeDir(fsys, parent); err != nil {
			return err
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(fsys, parent)
}

// lockDir takes the folder for this process.
func lockDir(fsys vfs.FS, dir string) (io.Closer, error) {
	lock, err := fsys.Lock(fsys.PathJoin(dir, lockFile))
	if err == nil {
		return lock, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoStore)
	}
	// Somebody else's lock shows as EAGAIN, and as an error without a number if it is one of this process.
	var errno syscall.Errno
	var path *os.PathError
	if errors.As(err, &errno) && errno != syscall.EAGAIN || errors.As(err, &path) {
		return nil, fmt.Errorf("lock store folder %s: %w", dir, err)
	}
	return nil, fmt.Errorf("%s: %w", dir, ErrInUse)
}
