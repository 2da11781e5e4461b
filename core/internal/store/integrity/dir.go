package integrity

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

	"broker/core/internal/record"
	"broker/core/internal/store/atomicfile"
)

// BaseFormat is the format of a store with nothing in it that needs a newer one (record.Features).
const BaseFormat = 2

// Files of the folder that are not Pebble's, beside GUARD.
const (
	FormatFile = "FORMAT"
	LockFile   = "LOCK"

	formatText = "broker store, format "
)

// Names of Pebble's files. Markers are empty files; the end of the name is the value.
const (
	TableSuffix = ".sst"
	LogSuffix   = ".log"

	ManifestPrefix = "MANIFEST-"
	ManifestMarker = "marker.manifest."
	FormatMarker   = "marker.format-version."
)

// DirState is what the file names of a folder tell about the store.
type DirState struct {
	NewestLog string // its name; empty: there is none
	LogBytes  int64  // size of that log if it was completed, else zero
	Format    uint64 // version in FORMAT, which exists once the store was opened successfully; zero: no file
	Manifest  string // the manifest that the marker names
}

// Scan checks a folder before Pebble opens it. It refuses formats that are newer than this code, and damage that Pebble
// would not detect. It loads GUARD into g.
func Scan(fsys vfs.FS, dir string, g *Guard) (DirState, error) {
	var v DirState
	data := 0 // tables and logs
	files, err := fsys.List(dir)
	if err != nil {
		return v, fmt.Errorf("list store folder %s: %w", dir, err)
	}
	slices.Sort(files) // of several markers the last one counts
	for _, name := range files {
		switch {
		case name == FormatFile:
			if v.Format, err = readFormatFile(fsys, fsys.PathJoin(dir, name)); err != nil {
				return v, err
			}
		case strings.HasPrefix(name, ManifestMarker):
			v.Manifest = markerValue(name)
		case strings.HasPrefix(name, FormatMarker):
			n, err := strconv.ParseUint(markerValue(name), 10, 64)
			if err == nil && pebble.FormatMajorVersion(n) > pebble.FormatNewest {
				return v, fmt.Errorf("store folder %s, tables of format %d: %w", dir, n, record.ErrNewerFormat)
			}
		case strings.HasSuffix(name, TableSuffix):
			data++
		case strings.HasSuffix(name, LogSuffix):
			data++
			if v.NewestLog == "" || logNumber(name) > logNumber(v.NewestLog) {
				v.NewestLog = name
			}
		}
	}
	if v.Manifest == "" && (v.Format > 0 || data > 0) {
		return v, Damaged(fsys.PathJoin(dir, ManifestMarker+"*"), "scan the folder",
			errors.New("other files of the store are there"))
	}
	if v.Format == 0 {
		return v, nil // a new store, or a store that was never completed
	}
	err = g.verify(fsys, dir, v.Manifest)
	v.LogBytes = g.sizeOf(v.NewestLog)
	return v, err
}

// markerValue returns the end of a marker's name, after its number.
func markerValue(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func readFormatFile(fsys vfs.FS, path string) (uint64, error) {
	text, err := atomicfile.Read(fsys, path)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(string(text)), formatText)
	n, err := strconv.ParseUint(rest, 10, 64)
	if !ok || err != nil || n == 0 {
		return 0, Damaged(path, "read the format", fmt.Errorf("it says %.40q", text))
	}
	if err := CheckFormat(n); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// CheckFormat refuses a format that is newer than this code.
func CheckFormat(n uint64) error {
	if n > record.NewestFormat {
		return fmt.Errorf("store of format %d, this broker knows %d: %w", n, record.NewestFormat, record.ErrNewerFormat)
	}
	return nil
}

// FormatText is the content of FORMAT.
func FormatText(format uint64) string { return fmt.Sprintf("%s%d\n", formatText, format) }

// WriteFormatFile creates or replaces FORMAT.
func WriteFormatFile(fsys vfs.FS, dir string, format uint64) error {
	return atomicfile.Write(fsys, dir, FormatFile, FormatText(format))
}

// LockDir locks the folder for this process.
func LockDir(fsys vfs.FS, dir string) (io.Closer, error) {
	lock, err := fsys.Lock(fsys.PathJoin(dir, LockFile))
	if err == nil {
		return lock, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoStore)
	}
	// A lock of another process is EAGAIN; one of this process is an error without a number.
	var errno syscall.Errno
	var path *os.PathError
	if errors.As(err, &errno) && errno != syscall.EAGAIN || errors.As(err, &path) {
		return nil, fmt.Errorf("lock store folder %s: %w", dir, err)
	}
	return nil, fmt.Errorf("%s: %w", dir, ErrInUse)
}
