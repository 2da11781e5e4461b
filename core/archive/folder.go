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

// Errors of reading an archive.
var (
	ErrNoArchive    = errors.New("there is no archive")
	ErrNewerArchive = errors.New("the archive is of a newer broker")
)

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
	at     core.Instant // when that was sealed
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
		return fmt.Errorf("%s: %w", dir, ErrNewerArchive)
	}
	return fmt.Errorf("%s: %s does not say that this is an archive", dir, markFile)
}

// timelines lists what an archive has, in the order in which it began.
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
			continue // not ours
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
		return t, nil // it was pruned meanwhile
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // pruned meanwhile, or not ours
		}
		path := filepath.Join(dir, e.Name())
		if m := baseName.FindStringSubmatch(e.Name()); m != nil {
			number, _ := strconv.ParseUint(m[1], 10, 64) // 20 digits: too large ones are not ours, and become the largest
			at, _ := strconv.ParseInt(m[2], 10, 64)      // likewise
			t.bases = append(t.bases, base{path: path, number: number, at: core.Instant(at), bytes: info.Size()})
		} else if m := segmentName.FindStringSubmatch(e.Name()); m != nil {
			first, _ := strconv.ParseUint(m[1], 10, 64)
			t.segs = append(t.segs, segment{path: path, first: first, bytes: info.Size()})
		}
	}
	return t, nil // sorted by name, which begins with the number
}

// from is the index of the first segment that may have entries after the one with a number.
func (t *timeline) from(number uint64) int {
	for i := range t.segs {
		if i+1 == len(t.segs) || t.segs[i+1].first > number+1 {
			return i
		}
	}
	return 0
}

// at is the timeline of a moment, and its base copies up to then, the newest first; nil if the archive does not reach back so far.
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

// earliest is the first moment that can be restored; zero: none.
func earliest(all []*timeline) core.Instant {
	for _, t := range all {
		if len(t.bases) > 0 {
			return max(t.began, t.bases[0].at)
		}
	}
	return 0
}

// random makes a name that no other writer has.
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
