package store

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"broker/core"
	"broker/core/internal/record"
)

// get returns a copy of the value of a key, or ErrMissing.
func (s *Store) get(key []byte) ([]byte, error) {
	if !s.use.enter() {
		return nil, ErrClosed
	}
	defer s.use.leave()
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	return copyAndClose(value, closer)
}

func copyAndClose(value []byte, closer io.Closer) ([]byte, error) {
	own := append(make([]byte, 0, len(value)), value...) // not nil even if empty
	return own, closer.Close()
}

// Job reads a job with its body. Nothing else refers to its memory.
func (s *Store) Job(seq uint64) (*core.Job, error) {
	var k jobKey
	value, err := s.get(k.of(spaceJob, seq, partJob))
	if err != nil {
		return nil, s.damage(fmt.Sprintf("read job %d", seq), err)
	}
	return s.wholeJob(seq, value)
}

// wholeJob decodes a job, which keeps value, and reads its body if that has a key of its own.
func (s *Store) wholeJob(seq uint64, value []byte) (*core.Job, error) {
	j := new(core.Job)
	size, _, err := record.DecodeJob(value, seq, j, nil, nil)
	if err != nil {
		return nil, s.damage(fmt.Sprintf("read job %d", seq), err)
	}
	if size == 0 {
		return j, nil
	}
	var k jobKey
	what := fmt.Sprintf("read the body of job %d", seq)
	body, err := s.get(k.of(spaceBody, seq, partJob))
	if err != nil {
		return nil, s.damage(what, err) // ErrMissing: the job was removed meanwhile
	}
	if len(body) != size {
		return nil, s.damage(what, fmt.Errorf("%d bytes instead of %d: %w", len(body), size, record.ErrRange))
	}
	j.Body = body
	return j, nil
}

// Failure reads the last failure of a job; ErrMissing if it has none.
func (s *Store) Failure(seq uint64) (*core.Failure, error) {
	e := new(core.Failure)
	err := s.part(seq, partFailure, func(b []byte) (bool, error) { return record.DecodeFailure(b, e) })
	if err != nil {
		return nil, s.damage(fmt.Sprintf("read the failure of job %d", seq), err)
	}
	return e, nil
}

// Outcome reads the outcome of a job; ErrMissing if none is kept.
func (s *Store) Outcome(seq uint64) (*core.Outcome, error) {
	o := new(core.Outcome)
	err := s.part(seq, partOutcome, func(b []byte) (bool, error) { return record.DecodeOutcome(b, o) })
	if err != nil {
		return nil, s.damage(fmt.Sprintf("read the outcome of job %d", seq), err)
	}
	return o, nil
}

// part reads a record that may be in the body space.
func (s *Store) part(seq uint64, part byte, decode func([]byte) (external bool, err error)) error {
	var k jobKey
	for _, space := range [...]byte{spaceJob, spaceBody} {
		value, err := s.get(k.of(space, seq, part))
		if err != nil {
			return err
		}
		if external, err := decode(value); !external || err != nil {
			return err
		}
	}
	return record.ErrFields // the body space refers to the body space
}
