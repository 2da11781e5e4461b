package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"broker/core"
	"broker/core/internal/record"
)

// maxFindings limits the findings in a Report.
const maxFindings = 100

// Report is the result of Check.
type Report struct {
	Jobs, Statuses, Failures, Outcomes uint64
	Bodies                             uint64 // with a key of their own
	TimelineEntries                    uint64
	MetaEntries                        uint64   // settings of queues, counters, schedules
	Documents                          uint64   // of front-ends
	Bytes                              uint64   // of all keys and values
	Damage                             []string // data that is missing or damaged
	Orphans                            []string // parts of jobs that do not exist: harmless, but a bug
	More                               uint64   // findings beyond maxFindings
}

// Check reads everything, which verifies every checksum, and decodes every record. The Report has the findings; an
// error means that Check itself could not continue. progress may be nil; it is called from time to time with the number
// of keys read. Commits may continue: Check reads the state of the store at its start.
func (s *Store) Check(ctx context.Context, progress func(keys uint64)) (Report, error) {
	if !s.use.enter() {
		return Report{}, ErrClosed
	}
	defer s.use.leave()
	at, err := s.db.NewIter(nil) // not a snapshot, which a failed store cannot provide
	if err != nil {
		return Report{}, fmt.Errorf("check store: %w", err)
	}
	defer func() { _ = at.Close() }() // it was not positioned
	c := checker{s: s, at: at, ctx: ctx, progress: progress}
	if err := s.db.CheckLevels(nil); err != nil {
		c.damage("order of tables", err)
	}
	c.walk(spaceJob, c.jobRecord)
	c.openBodies()
	if c.bodies != nil {
		c.walk(spaceJob, c.bodyOf)
		c.restOfBodies(^uint64(0))
		if err := c.bodies.Close(); err != nil {
			c.damage("bodies", err)
		}
	}
	c.walk(spaceMeta, func(key, value []byte) {
		if isInternal(key) {
			return
		}
		c.r.MetaEntries++
		c.r.Bytes += uint64(len(key) + len(value))
	})
	c.walk(spaceDocument, func(key, value []byte) {
		c.r.Documents++
		c.r.Bytes += uint64(len(key) + len(value))
	})
	return c.r, ctx.Err()
}

// TableKeys returns the number of keys in the tables. Old versions and deletes count too; keys that are only in
// memory do not.
func (s *Store) TableKeys() (keys uint64, err error) {
	if !s.use.enter() {
		return 0, ErrClosed
	}
	defer s.use.leave()
	levels, err := s.db.SSTables(pebble.WithProperties())
	if err != nil {
		return 0, fmt.Errorf("list tables: %w", err)
	}
	for _, tables := range levels {
		for i := range tables {
			keys += tables[i].Properties.NumEntries
		}
	}
	return keys, nil
}

// checker walks the jobs twice: first for their records, then in parallel with the body space.
type checker struct {
	s        *Store
	at       *pebble.Iterator // the reading iterators are its clones, so all see the same state
	ctx      context.Context
	progress func(uint64)
	r        Report
	keys     uint64

	seq     uint64 // the current job
	present bool   // the current job has a record
	job     core.Job
	status  record.Status
	failure core.Failure
	outcome core.Outcome

	before  uint64 // the job before the current one
	bodies  *pebble.Iterator
	hasBody bool // bodies is positioned at a key
}

// iterator reads a space.
func (c *checker) iterator(space byte) (*pebble.Iterator, error) {
	return c.at.Clone(pebble.CloneOptions{IterOptions: &pebble.IterOptions{
		LowerBound: []byte{space}, UpperBound: []byte{space + 1},
	}})
}

// walk calls each for all keys of a space.
func (c *checker) walk(space byte, each func(key, value []byte)) {
	what := fmt.Sprintf("keys of %q", space)
	it, err := c.iterator(space)
	if err != nil {
		c.damage(what, err)
		return
	}
	for ok := it.First(); ok; ok = it.Next() {
		if c.keys++; c.keys%scanTick == 0 {
			if c.ctx.Err() != nil {
				break
			}
			if c.progress != nil {
				c.progress(c.keys)
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			c.damage(fmt.Sprintf("value of key %x", it.Key()), err)
			continue
		}
		each(it.Key(), value)
	}
	if err := it.Error(); err != nil {
		c.damage(fmt.Sprintf("%s behind job %d", what, c.seq), err)
	}
	_ = it.Close() // returns the error that Error returned
}

// jobRecord decodes one record of the job space.
func (c *checker) jobRecord(key, value []byte) {
	c.r.Bytes += uint64(len(key) + len(value))
	seq, part, ok := parseKey(key)
	if !ok {
		c.damage(fmt.Sprintf("key %x", key), record.ErrRange)
		return
	}
	if seq != c.seq || part == partJob {
		c.seq, c.present = seq, part == partJob
	}
	if !c.present {
		c.orphan(fmt.Sprintf("part %q of job %d", part, seq))
	}
	var err error
	switch part {
	case partJob:
		c.r.Jobs++
		_, _, err = record.DecodeJob(value, seq, &c.job, nil, nil)
	case partStatus:
		c.r.Statuses++
		err = record.DecodeStatus(value, seq, &c.status)
	case partFailure:
		c.r.Failures++
		_, err = record.DecodeFailure(value, &c.failure)
	case partOutcome:
		c.r.Outcomes++
		_, err = record.DecodeOutcome(value, &c.outcome)
	default:
		err = record.ErrNewerFormat
	}
	if err != nil {
		c.damage(fmt.Sprintf("part %q of job %d", part, seq), err)
	}
}

func (c *checker) openBodies() {
	it, err := c.iterator(spaceBody)
	if err != nil {
		c.damage("bodies", err)
		return
	}
	c.bodies, c.hasBody = it, it.First()
}

// bodyOf compares a key of the job space with its value in the body space.
func (c *checker) bodyOf(key, value []byte) {
	seq, part, ok := parseKey(key)
	if !ok {
		return // already reported
	}
	want, size := false, -1
	switch part {
	case partJob:
		c.restOfBodies(seq)
		c.before = seq
		n, _, err := record.DecodeJob(value, seq, &c.job, nil, nil)
		want, size = err == nil && n > 0, n
	case partFailure:
		want, _ = record.DecodeFailure(value, &c.failure)
	case partOutcome:
		want, _ = record.DecodeOutcome(value, &c.outcome)
	}
	if want {
		c.takeBody(seq, part, size)
	}
}

// takeBody reads the large value that a record of the job space refers to.
func (c *checker) takeBody(seq uint64, part byte, size int) {
	what := fmt.Sprintf("large value %q of job %d", part, seq)
	at, atPart := c.bodyKey()
	for c.hasBody && at == seq && atPart < part {
		c.hasBody = c.bodies.Next() // an older, larger failure
		at, atPart = c.bodyKey()
	}
	if !c.hasBody || at != seq || atPart != part {
		c.damage(what, ErrMissing)
		return
	}
	value, err := c.bodies.ValueAndErr()
	c.r.Bytes += uint64(len(c.bodies.Key()) + len(value))
	switch {
	case err != nil:
	case part == partFailure:
		_, err = record.DecodeFailure(value, &c.failure)
	case part == partOutcome:
		_, err = record.DecodeOutcome(value, &c.outcome)
	default:
		c.r.Bodies++
		if len(value) != size {
			err = fmt.Errorf("%d bytes instead of %d: %w", len(value), size, record.ErrRange)
		}
	}
	if err != nil {
		c.damage(what, err)
	}
	c.hasBody = c.bodies.Next()
}

// restOfBodies skips the values of jobs below seq. A body that no job refers to is an orphan; a failure that was large
// earlier is not.
func (c *checker) restOfBodies(seq uint64) {
	for c.hasBody {
		at, part := c.bodyKey()
		if at >= seq {
			return
		}
		switch part {
		case partJob:
			c.orphan(fmt.Sprintf("body of job %d", at))
		case partTimeline:
			c.timelineEntry(at)
		}
		c.hasBody = c.bodies.Next()
	}
	if err := c.bodies.Error(); err != nil {
		c.damage("bodies", err)
	}
}

// timelineEntry reads a timeline entry of the last job, or of a job that does not exist.
func (c *checker) timelineEntry(seq uint64) {
	what := fmt.Sprintf("timeline of job %d", seq)
	value, err := c.bodies.ValueAndErr()
	if err == nil {
		var e core.TimelineEntry
		err = record.DecodeTimelineEntry(value, &e)
	}
	c.r.Bytes += uint64(len(c.bodies.Key()) + len(value))
	c.r.TimelineEntries++
	switch {
	case err != nil:
		c.damage(what, err)
	case seq != c.before:
		c.orphan("entry in the " + what)
	}
}

func (c *checker) bodyKey() (seq uint64, part byte) {
	if c.hasBody {
		seq, part, _ = parseKey(c.bodies.Key())
	}
	return seq, part
}

func (c *checker) damage(what string, err error) {
	text := fmt.Sprintf("%s: %v", what, plain(err))
	var d *DamageError
	if errors.As(c.s.damage(what, err), &d) && d.Path != "" {
		text = d.Path + ": " + text
	}
	c.r.Damage = c.add(c.r.Damage, text)
}

func (c *checker) orphan(what string) { c.r.Orphans = c.add(c.r.Orphans, what) }

func (c *checker) add(list []string, text string) []string {
	if len(list) >= maxFindings {
		c.r.More++
		return list
	}
	return append(list, text)
}
