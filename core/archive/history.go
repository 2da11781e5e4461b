package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"broker/core/internal/record"
	"broker/core/internal/store"
)

// Visitor receives the history in an archive.
type Visitor interface {
	// Base is called with the state before the following entries. It may not continue the entries before.
	Base(ctx context.Context, s *store.Store) error
	Entry(e *record.Entry) error
}

// Walk passes all entries of an archive to a visitor, in order. It unpacks the copies of the store in the folder for
// temporary files, one at a time. The notes say where entries are missing.
func Walk(ctx context.Context, dir string, v Visitor) (notes []string, err error) {
	all, err := timelines(dir)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		more, err := t.visit(ctx, v)
		if err != nil {
			return nil, err
		}
		notes = append(notes, more...)
	}
	return notes, nil
}

// visit passes a timeline to the visitor. After a gap, it continues with the next base copy.
func (t *timeline) visit(ctx context.Context, v Visitor) (notes []string, err error) {
	w := walk{t: t, until: endOfTime}
	begun := false
	for _, b := range t.bases {
		if begun && b.number <= w.last.Number {
			continue // the entries have already reached this state
		}
		err := visitBase(ctx, b, v)
		if errors.Is(err, errBase) {
			notes = append(notes, err.Error())
			continue
		}
		if err != nil {
			return nil, err
		}
		begun = true
		if err := w.run(ctx, b.number, v.Entry); err != nil {
			return nil, err
		}
	}
	return append(notes, w.notes...), nil
}

// visitBase passes a base copy to the visitor.
func visitBase(ctx context.Context, b base, v Visitor) (err error) {
	work, err := os.MkdirTemp("", "broker-base-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	dir := filepath.Join(work, "store")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := readBase(ctx, b.path, dir); err != nil {
		return err
	}
	s, err := store.Open(store.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(v.Base(ctx, s), s.Close())
}
