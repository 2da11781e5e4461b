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

// Job reads a job with its body. The caller owns its memory.
func (s *Store) Job(seq uint64) (*core.Job, error) {
	if !s.use.enter() {
		return nil, ErrClosed
	}
	defer s.use.leave()
	j, size, err := s.jobFrom(s.get, seq)
	if err != nil || size == 0 {
		return j, err
	}
	// The body has a key of its own, and the job may be rewritten between the two reads, so both use one iterator,
	// which sees one state of the store. A snapshot would work too, but needs a lock that a failed write may hold
	// forever.
	it, err := s.db.NewIter(nil)
	if err != nil {
		return nil, s.damage(fmt.Sprintf("read job %d", seq), err)
	}
	defer func() { _ = it.Close() }() // its error was reported by Error
	return s.jobAt(it, seq)
}

// Jobs reads jobs with their bodies in one pass, which costs less than reading one after another if the numbers are in
// order and near each other. A job that cannot be read is nil. The caller owns their memory.
func (s *Store) Jobs(seqs []uint64) []*core.Job {
	jobs := make([]*core.Job, len(seqs))
	if !s.use.enter() {
		return jobs
	}
	defer s.use.leave()
	it, err := s.db.NewIter(nil)
	if err != nil {
		return jobs
	}
	defer func() { _ = it.Close() }() // its error was reported by Error
	for k, seq := range seqs {
		jobs[k], _ = s.jobAt(it, seq) // nil with an error: whoever needs this job reads it again and reports it
	}
	return jobs
}

// jobAt is Job in the state that an iterator sees.
func (s *Store) jobAt(it *pebble.Iterator, seq uint64) (*core.Job, error) {
	get := func(key []byte) ([]byte, error) { return getAt(it, key) }
	j, size, err := s.jobFrom(get, seq)
	if err != nil || size == 0 {
		return j, err
	}
	var k jobKey
	what := fmt.Sprintf("read the body of job %d", seq)
	if j.Body, err = get(k.of(spaceBody, seq, partJob)); err != nil {
		return nil, s.damage(what, err)
	}
	if len(j.Body) != size {
		return nil, s.damage(what, fmt.Errorf("%d bytes instead of %d: %w", len(j.Body), size, record.ErrRange))
	}
	return j, nil
}

// Head reads a job. If the body has a key of its own, it is not read, and Body is nil. The caller owns the memory.
func (s *Store) Head(seq uint64) (*core.Job, error) {
	var k jobKey
	value, err := s.get(k.of(spaceJob, seq, partJob))
	if err == nil {
		j := new(core.Job)
		if _, _, err = record.DecodeJob(value, seq, j, nil, nil); err == nil {
			return j, nil
		}
	}
	return nil, s.damage(fmt.Sprintf("read job %d", seq), err)
}

// getAt is get in the state that an iterator sees.
func getAt(it *pebble.Iterator, key []byte) ([]byte, error) {
	if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
		if err := it.Error(); err != nil {
			return nil, err
		}
		return nil, ErrMissing
	}
	value, err := it.ValueAndErr()
	return append(make([]byte, 0, len(value)), value...), err // not nil even if empty
}

// jobFrom reads a job, and the size of its body if that has a key of its own.
func (s *Store) jobFrom(get func(key []byte) ([]byte, error), seq uint64) (j *core.Job, bodyBytes int, err error) {
	var k jobKey
	value, err := get(k.of(spaceJob, seq, partJob))
	if err == nil {
		j = new(core.Job)
		bodyBytes, _, err = record.DecodeJob(value, seq, j, nil, nil)
	}
	if err != nil {
		return nil, 0, s.damage(fmt.Sprintf("read job %d", seq), err)
	}
	return j, bodyBytes, nil
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

// Timeline reads the entries of a job's timeline, in no particular order; none if it has no timeline.
func (s *Store) Timeline(seq uint64) (entries []core.TimelineEntry, err error) {
	if !s.use.enter() {
		return nil, ErrClosed
	}
	defer s.use.leave()
	what := fmt.Sprintf("read the timeline of job %d", seq)
	var from, to jobKey
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: from.of(spaceBody, seq, partTimeline), UpperBound: to.of(spaceBody, seq, partTimeline+1),
	})
	if err != nil {
		return nil, s.damage(what, err)
	}
	defer func() { err = errors.Join(err, s.damage(what, it.Close())) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, s.damage(what, err)
		}
		var e core.TimelineEntry
		if err := record.DecodeTimelineEntry(bytes.Clone(value), &e); err != nil {
			return nil, s.damage(what, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}
