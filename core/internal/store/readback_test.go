package store

import (
	"fmt"

	"broker/core/internal/record"
)

// Status reads the status of a job; ErrMissing if it has none.
func (s *Store) Status(seq uint64) (*record.Status, error) {
	var k jobKey
	value, err := s.get(k.of(spaceJob, seq, partStatus))
	st := new(record.Status)
	if err == nil {
		err = record.DecodeStatus(value, seq, st)
	}
	if err != nil {
		return nil, s.damage(fmt.Sprintf("read the status of job %d", seq), err)
	}
	return st, nil
}

// Meta reads a metadata entry; ErrMissing if there is none.
func (s *Store) Meta(name string) ([]byte, error) {
	value, err := s.get(appendMetaKey(nil, name))
	return value, s.damage("read metadata "+name, err)
}

// Commit appends b as the entry that follows the last one.
func (s *Store) Commit(b *record.CommitBatch) error {
	last := s.Position()
	e := record.Entry{Position: record.Position{Number: last.Number + 1}, Prev: last.Number, Batch: b}
	return s.Append(&e)
}
