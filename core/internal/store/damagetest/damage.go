// Package damagetest damages stores, for the tests of what reads them.
package damagetest

import (
	"fmt"

	"broker/core/internal/record"
	"broker/core/internal/store"
)

// Body makes the body of a job unreadable, in a store that nobody has open: its record says another size. The body must have
// a key of its own.
func Body(o store.Options, seq uint64) (err error) {
	s, err := store.Open(o)
	if err != nil {
		return err
	}
	defer func() {
		if closed := s.Close(); err == nil {
			err = closed
		}
	}()
	j, err := s.Job(seq)
	if err != nil {
		return err
	}
	if len(j.Body) <= record.InlineBytes {
		return fmt.Errorf("the body of job %d has %d bytes", seq, len(j.Body))
	}
	ch := record.Change{Seq: seq, Job: j, Stored: record.Rewritten | record.HasBody, KeepBody: true, BodyBytes: len(j.Body)}
	j.Body = append(j.Body, 'x')
	last := s.Position()
	return s.Append(&record.Entry{
		Position: record.Position{Number: last.Number + 1, At: last.At}, Prev: last.Number,
		Batch: &record.CommitBatch{Changes: []record.Change{ch}},
	})
}
