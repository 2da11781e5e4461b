package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"broker/core"
	"broker/core/engine"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// shipper is the part of a Writer that does the I/O. Its fields belong to one goroutine.
type shipper struct {
	w     *Writer
	store *store.Store
	from  record.Position // position of the store when the Writer began

	recent engine.Recent // nil: there is no log

	entered  bool   // the folder was read
	dir      string // of the timeline that is being written
	based    bool   // the timeline has a base copy
	basePath string // the newest base copy
	baseAt   core.Instant
	baseTime core.Instant // when the newest base copy was begun
	seg      file         // nil: the next entries begin a new segment
	segPath  string
	segBytes int
	sent     queue // entries taken from the Writer and not written yet
	copying  *copying
	pruned   core.Instant // time of the last attempt to prune

	timelinePause time.Duration // pause before the next timeline, after timelines that got no base copy
	timelineAt    core.Instant  // end of that pause

	pause   time.Duration // pause before the next attempt; zero: no failure
	retryAt core.Instant
}

// run ships until ctx is done, and then ships the remaining queue.
func (w *Writer) run(ctx context.Context) {
	s := &w.shipper
	defer s.leave()
	timer := time.NewTicker(w.o.Every)
	defer timer.Stop()
	for {
		s.step(ctx)
		select {
		case <-ctx.Done():
			if s.pause == 0 && s.dir != "" {
				_ = s.ship() // the last attempt; after a failure, these entries are missing in the archive
			}
			return
		case <-timer.C:
		case <-w.full:
		}
	}
}

// leave closes the open files.
func (s *shipper) leave() {
	s.closeSegment()
	s.dropCopy()
}

// step does the work that is due now.
func (s *shipper) step(ctx context.Context) {
	now := s.w.o.Clock.Now()
	if s.pause > 0 && now < s.retryAt && s.retryAt.Sub(now) <= longestPause { // otherwise the clock was set
		return
	}
	if err := s.try(ctx); err != nil {
		s.failed(ctx, err)
		return
	}
	if s.pause > 0 && (s.copying == nil || !s.copying.retrying) {
		s.pause = 0
		s.w.o.Log(slog.LevelInfo, "the archive can be written again", "dir", s.w.o.Dir)
		s.w.note(func(st *core.Archive) { st.Error = "" })
	}
}

// failed records a failure; the next attempt follows after a pause.
func (s *shipper) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if s.pause == 0 {
		s.w.o.Log(slog.LevelError, "the archive cannot be written", "dir", s.w.o.Dir, "error", err.Error())
	}
	s.pause = min(max(2*s.pause, firstPause), longestPause)
	s.retryAt = s.w.o.Clock.Now().Add(s.pause)
	s.w.note(func(st *core.Archive) {
		st.Failures++
		st.Error = err.Error()
	})
}

// try is step without the handling of failures.
func (s *shipper) try(ctx context.Context) error {
	if !s.entered {
		if err := s.enter(); err != nil {
			return err
		}
		s.entered = true
	}
	if err := s.checkFiles(); err != nil {
		return err
	}
	if s.dir != "" {
		if err := s.ship(); err != nil {
			return err
		}
	}
	if s.dir == "" || s.w.overflowed() {
		if err := s.newTimeline(); err != nil {
			return err
		}
	}
	if err := s.copyBase(ctx); err != nil {
		return err
	}
	return s.prune()
}

// enter reads the folder. It continues a timeline that ends where the store began.
func (s *shipper) enter() error {
	if err := makeFolder(s.w.o.Dir); err != nil {
		return err
	}
	all, err := timelines(s.w.o.Dir)
	if err != nil {
		return err
	}
	for _, t := range slices.Backward(all) {
		if len(t.bases) == 0 {
			continue
		}
		goesOn, err := s.continues(t)
		if err != nil {
			return err
		}
		if goesOn {
			s.continueTimeline(t)
		}
		break
	}
	s.w.note(func(st *core.Archive) { st.Earliest, st.Bytes = earliest(all), totalBytes(all) })
	return nil
}

// checkFiles ends the timeline if its files are gone, for example because the folder was removed, or another volume was
// mounted. Without this check, the entries would go to a file that has no name.
func (s *shipper) checkFiles() error {
	if s.dir == "" {
		return nil
	}
	needed := []string{filepath.Join(s.w.o.Dir, markFile), s.dir}
	if s.based {
		needed = append(needed, s.basePath)
	}
	if s.seg != nil {
		needed = append(needed, s.segPath)
	}
	for _, path := range needed {
		info, err := os.Stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil || path == s.segPath && s.seg != nil && info.Size() != int64(s.segBytes) {
			s.w.o.Log(slog.LevelError, "files of the archive are gone, so a new timeline begins", "path", path)
			s.w.note(func(st *core.Archive) { st.Failures++ })
			s.dir = ""
			return nil
		}
	}
	return nil
}

// continueTimeline continues a timeline.
func (s *shipper) continueTimeline(t *timeline) {
	last := t.bases[len(t.bases)-1]
	s.dir, s.based, s.basePath, s.baseAt, s.baseTime = t.dir, true, last.path, last.at, last.at
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.status.BaseAt = last.at
	s.w.caughtUpLocked(true, nil)
}

// makeFolder creates the folder of an archive if it is missing.
func makeFolder(dir string) error {
	if IsArchive(dir) {
		return checkMark(dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != markFile+unfinished && e.Name() != "lost+found" {
			return fmt.Errorf("%s is neither an archive nor empty: it has %s", dir, e.Name())
		}
	}
	part := filepath.Join(dir, markFile+unfinished)
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(markText)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(part, filepath.Join(dir, markFile)), syncDir(dir))
}

// ship writes the queued entries. After a failure, it writes the same entries to a new segment.
func (s *shipper) ship() error {
	for len(s.sent.buf) > 0 || s.w.take(&s.sent) {
		if err := s.write(); err != nil {
			if s.closeSegment(); s.segBytes == len(segmentMagic) {
				_ = os.Remove(s.segPath) // it has no whole entry; a leftover does no harm
			}
			return err
		}
		s.w.shipped(&s.sent, s.based)
		s.sent = queue{buf: idle(s.sent.buf)}
	}
	return nil
}

func (s *shipper) write() error {
	if s.seg != nil && s.segBytes >= segmentBytes {
		s.closeSegment()
	}
	if s.seg == nil {
		path := filepath.Join(s.dir, segmentFile(s.sent.first))
		f, err := s.w.create(path)
		if err != nil {
			return err
		}
		s.seg, s.segPath, s.segBytes = f, path, len(segmentMagic)
		if _, err := f.Write([]byte(segmentMagic)); err != nil {
			return err
		}
		if err := syncDir(s.dir); err != nil {
			return err
		}
	}
	if _, err := s.seg.Write(s.sent.buf); err != nil {
		return err
	}
	s.segBytes += len(s.sent.buf)
	return s.seg.Sync()
}

func (s *shipper) closeSegment() {
	if s.seg != nil {
		_ = s.seg.Close() // it is synced, or its entries are written again
	}
	s.seg = nil
}

// newTimeline ends the timeline and begins a new one. The new base copy contains all entries that were dropped. If the
// folder is too slow for base copies, the next timeline waits for a while.
func (s *shipper) newTimeline() error {
	now := s.w.o.Clock.Now()
	if s.dir != "" && !s.based {
		s.timelinePause = min(max(2*s.timelinePause, firstTimelinePause), longestTimelinePause)
		s.timelineAt = now.Add(s.timelinePause)
	}
	s.closeSegment()
	s.dir, s.based, s.sent = "", false, queue{}
	s.w.ended()
	s.dropCopy()
	if s.timelinePause > 0 && now < s.timelineAt && s.timelineAt.Sub(now) <= longestTimelinePause {
		return nil
	}
	if err := makeFolder(s.w.o.Dir); err != nil {
		return err
	}
	dir := filepath.Join(s.w.o.Dir, timelineFolder(s.w.o.Clock.Now()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := syncDir(s.w.o.Dir); err != nil {
		return err
	}
	s.w.restart()
	c, err := s.checkpoint()
	if err != nil {
		s.w.ended()
		_ = os.Remove(dir) // empty
		return err
	}
	s.dir, s.copying = dir, c
	s.w.o.Log(slog.LevelInfo, "a timeline of the archive begins", "dir", dir, "entries", c.number)
	return nil
}
