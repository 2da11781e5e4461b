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

// Files of the folder that are ours, beside GUARD.
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
	format   bool   // FORMAT is there: the store was once opened with success
	manifest string // the manifest that the marker names
	data     int    // tables and logs
}

// look takes the survey and refuses what is newer than this code, and what is not whole in ways that Pebble would not
// see. What it learns about manifests goes into g.
func look(fsys vfs.FS, dir string, g *guard) (survey, error) {
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
		case strings.HasSuffix(name, tableSuffix), strings.HasSuffix(name, logSuffix):
			v.data++
		}
	}
	if v.manifest == "" && (v.format || v.data > 0) {
		return v, damaged(fsys.PathJoin(dir, manifestMarker+"*"), "look at the folder",
			errors.New("other files of the store are there"))
	}
	if !v.format {
		return v, nil // a new store, or one whose making was cut short
	}
	return v, g.verify(fsys, dir, v.manifest)
}

// markerValue is the end of a marker's name, behind its number.
func markerValue(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func checkFormatFile(fsys vfs.FS, path string) error {
	text, err := readWhole(fsys, path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(string(text)), formatText)
	n, err := strconv.ParseUint(rest, 10, 64)
	if !ok || err != nil {
		return damaged(path, "read the format", fmt.Errorf("it says %.40q", text))
	}
	if err := checkFormat(n); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// checkFormat judges a format version found in the store.
func checkFormat(n uint64) error {
	if n > formatVersion {
		return fmt.Errorf("store of format %d, this broker knows %d: %w", n, formatVersion, ErrNewerFormat)
	}
	return nil
}

func writeFormatFile(fsys vfs.FS, dir string) error {
	return writeWhole(fsys, dir, formatFile, fmt.Sprintf("%s%d\n", formatText, formatVersion))
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
