package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"broker/core"
	"broker/core/internal/record"
)

// get is the value of a key, the caller's own copy, or ErrMissing.
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

// Job reads a job with its body. It is a copy of its own: nothing else refers to its memory.
func (s *Store) Job(seq uint64) (*core.Job, error) {
	var k jobKey
	value, err := s.get(k.of(spaceJob, seq, partJob))
	if err != nil {
		return nil, s.damage(fmt.Sprintf("read job %d", seq), err)
	}
	return s.wholeJob(seq, value)
}

// wholeJob makes a job of its record, of which it becomes the owner, and fetches the body if it is elsewhere.
func (s *Store) wholeJob(seq uint64, value []byte) (*core.Job, error) {
	j := new(core.Job)
	size, err := record.DecodeJob(value, seq, j, nil, nil)
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
		return nil, s.damage(what, err) // missing: the job was removed meanwhile
	}
	if len(body) != size {
		return nil, s.damage(what, fmt.Errorf("%d bytes instead of %d: %w", len(body), size, record.ErrRange))
	}
	j.Body = body
	return j, nil
}

// Jobs reads many jobs, fastest in ascending order, and calls each once for every one of seqs, in their order: with a
// job as Job gives it, or with an error. An error of each ends the reading and is returned.
func (s *Store) Jobs(seqs []uint64, each func(seq uint64, job *core.Job, err error) error) error {
	if !s.use.enter() {
		return ErrClosed
	}
	defer s.use.leave()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceJob}, UpperBound: []byte{spaceJob + 1}})
	if err != nil {
		return s.damage("read jobs", err)
	}
	defer func() { _ = it.Close() }() // its error was reported by Error
	var k jobKey
	for _, seq := range seqs {
		job, err := s.jobAt(it, seq, k.of(spaceJob, seq, partJob))
		if err := each(seq, job, err); err != nil {
			return err
		}
	}
	return nil
}

// stepsBeforeSeek is how many keys an iterator passes one by one before looking for its target: jobs wanted together
// tend to lie together.
const stepsBeforeSeek = 4

// jobAt moves it to key, by small steps if it is close, and reads the job there.
func (s *Store) jobAt(it *pebble.Iterator, seq uint64, key []byte) (*core.Job, error) {
	found := it.Valid() && bytes.Compare(it.Key(), key) <= 0
	for i := 0; found && i < stepsBeforeSeek && bytes.Compare(it.Key(), key) < 0; i++ {
		found = it.Next()
	}
	if !found || bytes.Compare(it.Key(), key) < 0 {
		found = it.SeekGE(key)
	}
	if !found || !bytes.Equal(it.Key(), key) {
		if err := it.Error(); err != nil {
			return nil, s.damage(fmt.Sprintf("read job %d", seq), err)
		}
		return nil, ErrMissing
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, s.damage(fmt.Sprintf("read job %d", seq), err)
	}
	return s.wholeJob(seq, bytes.Clone(value))
}

// Status reads a job's status; ErrMissing if it has none.
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

// Failure reads a job's last failure; ErrMissing if it has none.
func (s *Store) Failure(seq uint64) (*core.Failure, error) {
	e := new(core.Failure)
	err := s.part(seq, partFailure, func(b []byte) (bool, error) { return record.DecodeFailure(b, e) })
	if err != nil {
		return nil, s.damage(fmt.Sprintf("read the failure of job %d", seq), err)
	}
	return e, nil
}

// Outcome reads how a job ended; ErrMissing if that is not kept.
func (s *Store) Outcome(seq uint64) (*core.Outcome, error) {
	o := new(core.Outcome)
	err := s.part(seq, partOutcome, func(b []byte) (bool, error) { return record.DecodeOutcome(b, o) })
	if err != nil {
		return nil, s.damage(fmt.Sprintf("read the outcome of job %d", seq), err)
	}
	return o, nil
}

// part reads a record that may be away in the body space.
func (s *Store) part(seq uint64, part byte, decode func([]byte) (away bool, err error)) error {
	var k jobKey
	for _, space := range [...]byte{spaceJob, spaceBody} {
		value, err := s.get(k.of(space, seq, part))
		if err != nil {
			return err
		}
		if away, err := decode(value); !away || err != nil {
			return err
		}
	}
	return record.ErrFields // away from where it is away to
}

// Mark reads a mark; ErrMissing if it was never written or removed.
func (s *Store) Meta(name string) ([]byte, error) {
	value, err := s.get(appendMetaKey(nil, name))
	return value, s.damage("read mark "+name, err)
}
