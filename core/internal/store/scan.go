package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"broker/core"
	"broker/core/internal/record"
)

// scanTick is the number of keys between two checks of the context and two reports of progress.
const scanTick = 1 << 14

// Scan calls each for all jobs in the order of their Seq. The Record and everything it points to are valid only during
// the call, except Job.Queue, Job.Type and the strings and bytes of the Status, which may be kept. Bodies with a key of
// their own, failures and outcomes are not read; Stored says which of them exist. If each returns an error, the scan
// ends and returns it. progress may be nil; it is called from time to time with the number of jobs so far and the
// fraction done, from 0 to 1.
func (s *Store) Scan(
	ctx context.Context, progress func(jobs uint64, part float64), each func(*record.Record) error,
) error {
	if !s.use.enter() {
		return ErrClosed
	}
	defer s.use.leave()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceJob}, UpperBound: []byte{spaceJob + 1}})
	if err != nil {
		return s.damage("scan jobs", err)
	}
	sc := scanner{s: s, it: it, each: each, names: record.NewInterner()}
	err = sc.run(ctx, progress)
	s.commit.saw(sc.needs)
	return errors.Join(err, s.damage("scan jobs", it.Close()))
}

// scanner collects the keys of one job in rec, and reuses the memory for the next job.
type scanner struct {
	s     *Store
	it    *pebble.Iterator
	each  func(*record.Record) error
	names *record.Interner

	rec    record.Record
	job    core.Job
	status record.Status
	idText [36]byte

	// Copies for the views in job and status, because Pebble reuses its memory when the iterator moves.
	jobBuf, statusBuf []byte

	needs int // format that a job needs
}

func (sc *scanner) run(ctx context.Context, progress func(uint64, float64)) error {
	first, last := sc.bounds()
	jobs := uint64(0)
	for ok, n := sc.it.First(), 0; ok; ok, n = sc.it.Next(), n+1 {
		if n%scanTick == scanTick-1 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(jobs, float64(sc.job.Seq-first)/float64(max(last-first, 1)))
			}
		}
		seq, part, ok := parseKey(sc.it.Key())
		if !ok {
			return sc.damage("scan jobs", fmt.Errorf("key %x: %w", sc.it.Key(), record.ErrRange))
		}
		value, err := sc.it.ValueAndErr()
		if err != nil {
			return sc.damage(fmt.Sprintf("scan jobs at %d", seq), err)
		}
		if part == partJob {
			if err := sc.flush(); err != nil {
				return err
			}
			jobs++
		}
		if err := sc.take(seq, part, value); err != nil {
			return sc.damage(fmt.Sprintf("scan jobs at %d", seq), err)
		}
	}
	if err := sc.it.Error(); err != nil {
		return sc.damage(fmt.Sprintf("scan jobs behind %d", sc.job.Seq), err)
	}
	if err := sc.flush(); err != nil {
		return err
	}
	if progress != nil {
		progress(jobs, 1)
	}
	return nil
}

func (sc *scanner) damage(what string, err error) error { return sc.s.damage(what, err) }

// bounds are the first and the last Seq, for progress; the scan reports damage.
func (sc *scanner) bounds() (first, last uint64) {
	if sc.it.First() {
		first, _, _ = parseKey(sc.it.Key())
	}
	if sc.it.Last() {
		last, _, _ = parseKey(sc.it.Key())
	}
	return first, last
}

// flush passes the collected job to each.
func (sc *scanner) flush() error {
	if sc.rec.Job == nil {
		return nil
	}
	if err := sc.each(&sc.rec); err != nil {
		return err
	}
	sc.rec = record.Record{}
	return nil
}

// take adds a key to the job it belongs to. Parts of a missing job are skipped: Check reports them.
func (sc *scanner) take(seq uint64, part byte, value []byte) error {
	r := &sc.rec
	if part == partJob {
		sc.jobBuf = append(sc.jobBuf[:0], value...)
		size, stored, err := record.DecodeJob(sc.jobBuf, seq, &sc.job, sc.names, &sc.idText)
		if err != nil {
			return err
		}
		sc.needs = max(sc.needs, record.StoredJobFormat(sc.jobBuf, &sc.job))
		*r = record.Record{Job: &sc.job, BodyBytes: len(sc.job.Body), Stored: stored}
		if size > 0 {
			r.BodyBytes = size
		}
		return nil
	}
	if r.Job == nil || r.Job.Seq != seq {
		return nil
	}
	switch part {
	case partStatus:
		sc.statusBuf = append(sc.statusBuf[:0], value...)
		if err := record.DecodeStatus(sc.statusBuf, seq, &sc.status); err != nil {
			return err
		}
		sc.needs = max(sc.needs, record.StoredStatusFormat(sc.statusBuf))
		detach(&sc.status)
		r.Status = &sc.status
		r.Stored |= record.HasStatus
	case partFailure:
		r.Stored |= record.HasFailure
	case partOutcome:
		r.Stored |= record.HasOutcome
	default:
		return fmt.Errorf("key with part %q: %w", part, record.ErrNewerFormat)
	}
	return nil
}

// detach copies the strings of st that callers may keep; few jobs have any.
func detach(st *record.Status) {
	st.Worker = strings.Clone(st.Worker)
	if x := st.Moved; x != nil {
		x.Queue, x.From = strings.Clone(x.Queue), strings.Clone(x.From)
	}
	if p := st.Progress; p != nil {
		p.Text, p.Verbatim = strings.Clone(p.Text), bytes.Clone(p.Verbatim)
	}
}

// ScanMeta calls each for all metadata entries whose names begin with prefix, in byte order. The value is valid during
// the call.
func (s *Store) ScanMeta(prefix string, each func(name string, value []byte) error) (err error) {
	if !s.use.enter() {
		return ErrClosed
	}
	defer s.use.leave()
	lower := appendMetaKey(nil, prefix)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: spaceEnd(lower)})
	if err != nil {
		return s.damage("scan metadata", err)
	}
	defer func() { err = errors.Join(err, s.damage("scan metadata", it.Close())) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return s.damage("scan metadata", err)
		}
		if isInternal(it.Key()) {
			continue
		}
		name := string(it.Key()[1:])
		s.commit.saw(record.MetaFormat(&core.MetaEntry{Name: name, Value: value}))
		if err := each(name, value); err != nil {
			return err
		}
	}
	return nil
}

// ScanDocuments calls each for the documents whose names begin with prefix and come after a name, in byte order, until
// it returns false. The value is valid during the call.
func (s *Store) ScanDocuments(prefix, after string, each func(name string, value []byte) bool) (err error) {
	if !s.use.enter() {
		return ErrClosed
	}
	defer s.use.leave()
	lower := appendDocumentKey(nil, prefix)
	upper := spaceEnd(lower)
	if after >= prefix && after != "" {
		lower = append(appendDocumentKey(nil, after), 0)
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return s.damage("scan documents", err)
	}
	defer func() { err = errors.Join(err, s.damage("scan documents", it.Close())) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return s.damage("scan documents", err)
		}
		if !each(string(it.Key()[1:]), value) {
			return nil
		}
	}
	return nil
}
