package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"broker/core"
	"broker/core/internal/store"
)

// copying is a copy of the store that becomes a base copy.
type copying struct {
	dir      string // of the copy
	part     string // the file in the archive, until it is complete
	number   uint64 // of the last entry in the copy
	at       core.Instant
	begun    core.Instant
	retrying bool // an earlier attempt has failed

	done   chan struct{} // closed when the attempt has ended; nil: no attempt runs
	cancel context.CancelFunc
	err    error // of the attempt, once done is closed
}

// dropCopy gives up a base copy.
func (s *shipper) dropCopy() {
	c := s.copying
	if c == nil {
		return
	}
	if c.done != nil {
		c.cancel()
		<-c.done
	}
	c.remove()
	s.copying = nil
	s.w.note(func(st *core.Archive) { st.Copying = false })
}

// remove removes the copy of the store, and the folder for such copies.
func (c *copying) remove() {
	_ = os.RemoveAll(c.dir)            // the next start removes any remains
	_ = os.Remove(filepath.Dir(c.dir)) // the next start removes it
}

// checkpoint copies the store.
func (s *shipper) checkpoint() (*copying, error) {
	c := &copying{dir: filepath.Join(s.w.o.Scratch, random()), begun: s.w.o.Clock.Now()}
	_ = os.RemoveAll(s.w.o.Scratch) // left by an earlier process
	if err := s.store.Checkpoint(c.dir); err != nil {
		return nil, err
	}
	copied, err := store.Open(store.Options{Dir: c.dir, ReadOnly: true})
	if err == nil {
		at := copied.Position()
		c.number, c.at = at.Number, at.At
		err = copied.Close()
	}
	if err != nil {
		c.remove()
		return nil, fmt.Errorf("copy store: %w", err)
	}
	return c, nil
}

// copyBase starts base copies, and records when they are complete.
func (s *shipper) copyBase(ctx context.Context) error {
	if s.dir == "" {
		return nil // the next timeline has to wait
	}
	if s.copying == nil {
		due := s.baseTime.Add(s.w.o.BaseEvery)
		if now := s.w.o.Clock.Now(); now < due || s.store.Position().At <= s.baseAt {
			return nil
		}
		c, err := s.checkpoint()
		if err != nil {
			return err
		}
		s.copying = c
	}
	c := s.copying
	if c.done == nil {
		c.done = make(chan struct{})
		work, cancel := context.WithCancel(ctx)
		c.cancel = cancel
		path := filepath.Join(s.dir, baseFile(c.number, c.at))
		c.part = path + "-" + random() + unfinished
		s.w.note(func(st *core.Archive) { st.Copying = true })
		go func() { // leave and newTimeline wait for it
			defer close(c.done)
			defer cancel()
			c.err = s.w.writeBase(work, c, path)
		}()
		return nil
	}
	select {
	case <-c.done:
	default:
		return nil
	}
	s.w.note(func(st *core.Archive) { st.Copying = false })
	if c.err != nil {
		c.done, c.retrying = nil, true
		return c.err
	}
	s.copied(c)
	return nil
}

// copied records a completed base copy.
func (s *shipper) copied(c *copying) {
	c.remove()
	s.copying, s.timelinePause = nil, 0
	s.based, s.basePath, s.baseAt, s.baseTime = true, filepath.Join(s.dir, baseFile(c.number, c.at)), c.at, c.begun
	s.pruned = 0
	s.w.o.Log(slog.LevelInfo, "a base copy is complete", "dir", s.dir, "entries", c.number)
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.status.Bases++
	s.w.status.BaseAt = c.at
	s.w.caughtUpLocked(true, &s.sent)
}

// writeBase writes a base copy. The file gets its final name once it is complete.
func (w *Writer) writeBase(ctx context.Context, c *copying, path string) error {
	f, err := w.create(c.part)
	if err != nil {
		return err
	}
	err = packBase(ctx, f, c.dir)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.part))
	}
	return errors.Join(os.Rename(c.part, path), syncDir(filepath.Dir(path)))
}
