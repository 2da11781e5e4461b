package archive

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"broker/core"
)

// abandonedAfter is the age at which a timeline without a base copy, or an incomplete file, is removed. By then its
// writer has stopped.
const abandonedAfter = 24 * time.Hour

// prune removes files that are not needed to restore any state within Options.Keep.
func (s *shipper) prune() error {
	now := s.w.o.Clock.Now()
	if s.pruned != 0 && now.Sub(s.pruned) < pruneEvery && now >= s.pruned {
		return nil
	}
	all, err := timelines(s.w.o.Dir)
	if err != nil {
		return err
	}
	if last := newest(all); last != nil && s.based && last.dir != s.dir {
		s.w.o.Log(slog.LevelError, "another broker writes to this archive too: each needs a folder of its own", "dir",
			s.w.o.Dir, "timeline", last.dir)
	}
	writing := ""
	if s.copying != nil {
		writing = s.copying.part
	}
	removed, err := prune(all, now, s.w.o.Keep, s.dir, writing)
	if err != nil {
		return err
	}
	if removed > 0 {
		s.w.o.Log(slog.LevelInfo, "old parts of the archive were removed", "files", removed)
		if all, err = timelines(s.w.o.Dir); err != nil {
			return err
		}
	}
	s.pruned = now
	s.w.note(func(st *core.Archive) { st.Earliest, st.Bytes = earliest(all), totalBytes(all) })
	return nil
}

// newest returns the newest timeline that can be restored.
func newest(all []*timeline) *timeline {
	t, _ := at(all, endOfTime)
	return t
}

// prune removes files that no state since now - keep needs, and returns how many. own is the folder of the timeline
// that is being written, writing is a base copy that is being written.
func prune(all []*timeline, now core.Instant, keep time.Duration, own, writing string) (removed int, err error) {
	oldest, bases := at(all, now.Add(-keep))
	for _, t := range all {
		switch {
		case oldest != nil && t.began < oldest.began:
			removed += len(t.bases) + len(t.segs)
			err = errors.Join(err, os.RemoveAll(t.dir))
		case t == oldest:
			n, failed := t.prune(bases[0])
			removed += n
			err = errors.Join(err, failed)
		case t.dir != own && len(t.bases) == 0 && now.Sub(t.began) > abandonedAfter:
			removed += len(t.segs)
			err = errors.Join(err, os.RemoveAll(t.dir))
		}
		removed += removeIncomplete(t.dir, writing, now)
	}
	return removed, err
}

// prune removes files that are older than a base copy.
func (t *timeline) prune(oldest base) (removed int, err error) {
	for _, b := range t.bases {
		if b.number < oldest.number {
			removed++
			err = errors.Join(err, os.Remove(b.path))
		}
	}
	for _, g := range t.segs[:t.from(oldest.number)] {
		removed++
		err = errors.Join(err, os.Remove(g.path))
	}
	return removed, err
}

// removeIncomplete removes files that were never completed.
func removeIncomplete(dir, writing string, now core.Instant) (removed int) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err == nil && path != writing && strings.HasSuffix(e.Name(), unfinished) &&
			now.Sub(core.InstantOf(info.ModTime())) > abandonedAfter &&
			os.Remove(path) == nil {
			removed++
		}
	}
	return removed
}

// totalBytes returns the size of an archive.
func totalBytes(all []*timeline) (n uint64) {
	for _, t := range all {
		for _, b := range t.bases {
			n += uint64(b.bytes)
		}
		for _, g := range t.segs {
			n += uint64(g.bytes)
		}
	}
	return n
}
