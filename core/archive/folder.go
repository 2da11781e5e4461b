package archive

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/core"
)

// Names in the folder of an archive. On disk.
const (
	markFile     = "ARCHIVE"
	markText     = "broker archive 1\n"
	unfinished   = ".unfinished"
	timelineTime = "20060102T150405.000000Z"
)

var (
	timelineName = regexp.MustCompile(`^(\d{8}T\d{6}\.\d{6}Z)-[0-9a-f]{8}$`)
	baseName     = regexp.MustCompile(`^base-(\d{20})-(\d{19})\.tar$`)
	segmentName  = regexp.MustCompile(`^log-(\d{20})-[0-9a-f]{8}\.seg$`)
)

// ErrNoArchive means that a folder is not an archive.
var ErrNoArchive = errors.New("there is no archive")

var errNewerArchive = errors.New("the archive is of a newer broker")

// timeline is a folder of an archive.
type timeline struct {
	dir   string
	began core.Instant
	bases []base    // in order
	segs  []segment // in order
}

// base is a base copy.
type base struct {
	path   string
	number uint64       // of the last entry in it
	at     core.Instant // when that entry was sealed
	bytes  int64
}

// segment is a file of entries.
type segment struct {
	path  string
	first uint64 // number of the first entry
	bytes int64
}

// IsArchive reports whether dir is the folder of an archive.
func IsArchive(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, markFile))
	return err == nil
}

// checkMark checks that a folder is an archive that this program can read.
func checkMark(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, markFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", dir, ErrNoArchive)
	case err != nil:
		return err
	case string(text) == markText:
		return nil
	case strings.HasPrefix(string(text), "broker archive "):
		return fmt.Errorf("%s: %w", dir, errNewerArchive)
	}
	return fmt.Errorf("%s: the file %s is damaged: its content should be %q", dir, markFile, markText)
}

// timelines lists the timelines of an archive in the order in which they began.
func timelines(dir string) ([]*timeline, error) {
	if err := checkMark(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*timeline
	for _, e := range entries {
		m := timelineName.FindStringSubmatch(e.Name())
		if m == nil || !e.IsDir() {
			continue
		}
		began, err := time.Parse(timelineTime, m[1])
		if err != nil {
			continue // a foreign folder
		}
		t, err := readTimeline(filepath.Join(dir, e.Name()), core.InstantOf(began))
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil // ReadDir sorts by name, which begins with the time
}

// readTimeline lists the files of a timeline.
func readTimeline(dir string, began core.Instant) (*timeline, error) {
	t := &timeline{dir: dir, began: began}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil // pruned in the meantime
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // pruned in the meantime, or a foreign file
		}
		path := filepath.Join(dir, e.Name())
		if m := baseName.FindStringSubmatch(e.Name()); m != nil {
			// 20 digits: a larger number belongs to a foreign file and becomes the maximum
			number, _ := strconv.ParseUint(m[1], 10, 64)
			at, _ := strconv.ParseInt(m[2], 10, 64) // also at most the maximum
			t.bases = append(t.bases, base{path: path, number: number, at: core.Instant(at), bytes: info.Size()})
		} else if m := segmentName.FindStringSubmatch(e.Name()); m != nil {
			first, _ := strconv.ParseUint(m[1], 10, 64)
			t.segs = append(t.segs, segment{path: path, first: first, bytes: info.Size()})
		}
	}
	return t, nil // sorted by name, which begins with the number
}

// from returns the index of the first segment that may have entries after the entry with this number.
func (t *timeline) from(number uint64) int {
	for i := range t.segs {
		if i+1 == len(t.segs) || t.segs[i+1].first > number+1 {
			return i
		}
	}
	return 0
}

// at returns the timeline for a point in time, and its base copies up to then, the newest first. It returns nil if the
// archive does not reach back that far.
func at(all []*timeline, moment core.Instant) (*timeline, []base) {
	for _, t := range slices.Backward(all) {
		if t.began > moment {
			continue
		}
		var bases []base
		for _, b := range slices.Backward(t.bases) {
			if b.at <= moment {
				bases = append(bases, b)
			}
		}
		if len(bases) > 0 {
			return t, bases
		}
	}
	return nil, nil
}

// earliest returns the first point in time that can be restored; zero: none.
func earliest(all []*timeline) core.Instant {
	for _, t := range all {
		if len(t.bases) > 0 {
			return max(t.began, t.bases[0].at)
		}
	}
	return 0
}

// random returns a unique suffix for a name.
func random() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func timelineFolder(began core.Instant) string {
	return began.Time().Format(timelineTime) + "-" + random()
}

func baseFile(number uint64, at core.Instant) string {
	return fmt.Sprintf("base-%020d-%019d.tar", number, int64(at))
}

func segmentFile(first uint64) string { return fmt.Sprintf("log-%020d-%s.seg", first, random()) }
