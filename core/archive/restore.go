package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// RestoreOptions say what to restore.
type RestoreOptions struct {
	From string       // folder of the archive
	To   string       // folder of the new store; must not exist, or be empty
	At   core.Instant // the point in time; zero: the newest state

	Progress func(entries uint64) // called from time to time with the number of applied entries; may be nil
}

// Restored says what was restored.
type Restored struct {
	Base    string       // the base copy
	Number  uint64       // of the last entry
	At      core.Instant // when it was sealed
	Entries uint64       // applied to the base copy
	Proof   Proof        // whether this is the state of the requested moment
	Notes   []string     // for operators: damaged files
}

// Errors of Restore.
var (
	ErrTooEarly = errors.New("the archive does not reach back so far")
	ErrEmpty    = errors.New("the archive has no base copy that can be read")
)

// restoring is the suffix of the folder in which a store is being restored. The folder gets its final name once the
// store is complete.
const restoring = ".restoring"

// Restore creates a store from an archive: the state after the last intact entry up to a point in time.
// Restored.Proof says whether entries between the two are missing.
func Restore(ctx context.Context, o RestoreOptions) (*Restored, error) {
	all, err := timelines(o.From)
	if err != nil {
		return nil, err
	}
	moment := o.At
	if moment == 0 {
		moment = endOfTime
	}
	t, _ := at(all, moment)
	if t == nil {
		if first := earliest(all); first != 0 {
			return nil, fmt.Errorf("%w: it begins at %s", ErrTooEarly, first.Time().Format(timeFormat))
		}
		return nil, fmt.Errorf("%s: %w", o.From, ErrEmpty)
	}
	if err := checkFree(o.To); err != nil {
		return nil, err
	}
	work := o.To + restoring
	if _, err := os.Lstat(work); err == nil {
		return nil, fmt.Errorf("%s is left from a restore that was interrupted; remove it: %w", work, fs.ErrExist)
	}
	if err := os.MkdirAll(filepath.Dir(work), 0o700); err != nil {
		return nil, err
	}
	r, err := choose(o.From, all, moment, func(r *Restored, t *timeline, b base) (*walk, error) {
		return r.fromBase(ctx, &o, &walk{t: t, until: moment}, b, work)
	})
	if err == nil {
		err = errors.Join(os.Rename(work, o.To), syncDir(filepath.Dir(work)))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	return r, nil
}

// timeFormat is the format of times in texts.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// checkFree checks that a store can be restored to a folder.
func checkFree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("restore to %s: it is not empty: %w", dir, fs.ErrExist)
	}
	return nil
}

// choose finds the newest intact base copy for a moment and calls use with it, which replays the entries after it. If
// use returns errBase, the copy before it is used. If a timeline has no intact copy, the timeline before it is used:
// its end is the last state before the moment that can be restored.
func choose(
	dir string, all []*timeline, moment core.Instant, use func(*Restored, *timeline, base) (*walk, error),
) (*Restored, error) {
	var damaged error
	r := &Restored{}
	for left := all; ; {
		t, bases := at(left, moment)
		if t == nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", dir, ErrEmpty), damaged)
		}
		here := slices.Index(all, t)
		for _, b := range bases {
			w, err := use(r, t, b)
			switch {
			case err == nil:
				r.Base = b.path
				r.Notes = append(r.Notes, w.notes...)
				r.Proof = r.prove(w, all[here+1:], moment)
				return r, nil
			case !errors.Is(err, errBase):
				return nil, err
			}
			damaged = errors.Join(damaged, err)
			r.Notes = append(r.Notes, err.Error()+"; the base copy before it is used")
		}
		left = all[:here]
	}
}

// Verify reads what a restore of a moment would read, without writing a store. Zero is the newest state.
func Verify(ctx context.Context, dir string, moment core.Instant, progress func(entries uint64)) (*Restored, error) {
	all, err := timelines(dir)
	if err != nil {
		return nil, err
	}
	if moment == 0 {
		moment = endOfTime
	}
	if t, _ := at(all, moment); t == nil {
		if first := earliest(all); first != 0 {
			return nil, fmt.Errorf("%w: it begins at %s", ErrTooEarly, first.Time().Format(timeFormat))
		}
	}
	return choose(dir, all, moment, func(r *Restored, t *timeline, b base) (*walk, error) {
		if err := readBase(ctx, b.path, ""); err != nil {
			return nil, err
		}
		w := &walk{t: t, until: moment}
		err := w.run(ctx, b.number, func(*record.Entry) error {
			if r.Entries++; r.Entries%1024 == 0 && progress != nil {
				progress(r.Entries)
			}
			return nil
		})
		r.Number, r.At = w.last.Number, max(b.at, w.last.At)
		return w, err
	})
}

// fromBase creates the store from a base copy and the entries after it. The error is errBase, and the folder does not
// exist, if the copy is damaged.
func (r *Restored) fromBase(ctx context.Context, o *RestoreOptions, w *walk, b base, work string) (*walk, error) {
	if err := os.Mkdir(work, 0o700); err != nil {
		return nil, err
	}
	if err := readBase(ctx, b.path, work); err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	return w, r.replay(ctx, o, w, work)
}

// replay applies the entries after the base copy.
func (r *Restored) replay(ctx context.Context, o *RestoreOptions, w *walk, work string) error {
	s, err := store.Open(store.Options{Dir: work, Replicated: true, MemTableBytes: 64 << 20})
	if err != nil {
		return err
	}
	at := s.Position()
	err = w.run(ctx, at.Number, func(e *record.Entry) error {
		if err := s.Replay(e); err != nil {
			return err
		}
		if r.Entries++; r.Entries%1024 == 0 && o.Progress != nil {
			o.Progress(r.Entries)
		}
		return nil
	})
	at = s.Position()
	r.Number, r.At = at.Number, at.At
	if err == nil {
		err = errors.Join(s.Flush(), s.Leave())
	}
	return errors.Join(err, s.Close())
}

// endOfTime is later than every entry.
const endOfTime core.Instant = 1 << 62

// walk reads the entries of a timeline in order.
type walk struct {
	t     *timeline
	until core.Instant // entries that were sealed later are left out

	last    record.Position // of the last entry; if it was replicated, Chain is the store's chain after it
	entries uint64
	notes   []string // problems found
	ended   bool     // reached until

	anywhere bool // the first entry may follow any other
}

// run calls each for the entries after the entry with number after, until an entry is missing or each returns an error.
func (w *walk) run(ctx context.Context, after uint64, each func(*record.Entry) error) error {
	w.last = record.Position{Number: after}
	segs := w.t.segs[w.t.from(after):]
	for i, g := range segs {
		cause, err := w.segment(ctx, g, each)
		if err != nil {
			return err
		}
		if w.ended {
			return nil
		}
		switch {
		case errors.Is(cause, errDamaged) && i+1 < len(segs) && segs[i+1].first <= w.last.Number+1:
			// its writer has written the entry again
		case errors.Is(cause, errGap), errors.Is(cause, errDamaged):
			w.notes = append(w.notes, fmt.Sprintf("%s: after entry %d: %v", g.path, w.last.Number, cause))
			return nil
		}
	}
	return nil
}

// errGap means that an entry does not follow its predecessor.
var errGap = errors.New("entries are missing")

// segment reads a segment. cause is why it ends early; entries that its writer has written again are in the next
// segment.
func (w *walk) segment(ctx context.Context, g segment, each func(*record.Entry) error) (cause, err error) {
	in, err := openSegment(g.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil // pruned in the meantime
	case errors.Is(err, errDamaged):
		return err, nil
	case err != nil:
		return nil, err
	}
	defer in.close()
	for {
		e, err := in.next()
		switch {
		case errors.Is(err, errDamaged):
			cause = err // unless the next entry follows, or an entry that is already applied
			continue
		case errors.Is(err, io.EOF):
			return cause, nil
		case errors.Is(err, errTorn):
			return cmp.Or(cause, err), nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", g.path, err)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case e.Number <= w.last.Number:
			cause = nil
			continue
		case e.Prev != w.last.Number && (!w.anywhere || w.entries > 0):
			return cmp.Or(cause, errGap), nil
		case e.At > w.until:
			w.ended = true
			return nil, nil
		}
		if err := each(e); err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", g.path, e.Number, err)
		}
		cause, w.last = nil, e.Position
		w.last.Chain = record.ChainOf(in.buf)
		w.entries++
	}
}
