package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"broker/core/internal/record"
)

// committer passes batches to Pebble on a goroutine of its own. A failure may block this goroutine forever; callers
// then stop waiting for it.
type committer struct {
	mu        sync.Mutex // one commit at a time; guards the fields below
	last      record.Position
	cluster   string // empty: part of no cluster
	followers []*Follower
	buf       []byte // for encoding, reused
	key       jobKey
	needs     int // format of the entry being encoded
	work      chan *pebble.Batch
	done      chan error // one result for each batch, unless the latch trips

	format atomic.Uint64 // of the store, as on disk
	// seen is a format that something in the store needs: at most that of the store, unless an older broker wrote it.
	seen atomic.Uint64
}

// start runs the goroutine; stop ends it.
func (c *committer) start(s *Store) {
	durable := pebble.Sync
	if s.replicated {
		durable = pebble.NoSync
	}
	c.work = make(chan *pebble.Batch)
	c.done = make(chan error, 1)
	go func() {
		_ = s.latch.Run("commit", func() error { // the latch has the error
			for batch := range c.work {
				c.done <- s.db.Apply(batch, durable)
			}
			return nil
		})
	}()
}

func (c *committer) stop() {
	if c.work != nil {
		close(c.work)
	}
}

// Append makes an entry durable: when it returns nil, all of it is on disk. An entry that does not follow the last one
// is refused with ErrSequence, an entry that is too large with errBatchSize; in both cases nothing has changed. Any
// other error is final: after a restart, either the whole entry is there or nothing of it.
func (s *Store) Append(e *record.Entry) error {
	c := &s.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	err := s.apply(func(pb *pebble.Batch) error {
		return c.fill(pb, e, e.Position)
	})
	if err == nil {
		c.last = e.Position
		c.note(e.Batch)
		err = s.formatCommitted()
	}
	return err
}

// fill adds an entry to pb, and the position to that follows from it.
func (c *committer) fill(pb *pebble.Batch, e *record.Entry, to record.Position) error {
	if !e.Follows(c.last) {
		return fmt.Errorf("entry %d of epoch %d, after %d, to a store at %d of epoch %d: %w", e.Number, e.Epoch, e.Prev,
			c.last.Number, c.last.Epoch, ErrSequence)
	}
	if c.needs = 0; c.seen.Load() > c.format.Load() {
		c.needs = int(c.seen.Load())
	}
	if err := c.encode(pb, e.Batch); err != nil {
		return err
	}
	if c.needs > record.NewestFormat {
		return fmt.Errorf("entry %d has a part that no format lists: %w", e.Number, record.ErrOldFormat)
	}
	if uint64(c.needs) > c.format.Load() {
		if err := c.setFormat(pb, uint64(c.needs)); err != nil {
			return err
		}
	}
	return c.setPosition(pb, to)
}

func (c *committer) setPosition(pb *pebble.Batch, to record.Position) error {
	c.buf = record.AppendPosition(c.buf[:0], to)
	return c.set(pb, positionKey, c.buf)
}

// Position returns the position of the last entry.
func (s *Store) Position() record.Position {
	s.commit.mu.Lock()
	defer s.commit.mu.Unlock()
	return s.commit.last
}

// readPosition is part of Open.
func (s *Store) readPosition() error {
	value, err := s.get(positionKey)
	if errors.Is(err, ErrMissing) {
		return nil // a new store, or one of format 1
	}
	if err == nil {
		s.commit.last, err = record.DecodePosition(value)
	}
	if err != nil {
		return s.damage("read the number of the last commit", err)
	}
	value, err = s.get(clusterKey)
	if errors.Is(err, ErrMissing) {
		return nil
	}
	s.commit.cluster = string(value)
	return s.damage("read the id of the cluster", err)
}

// apply fills a batch and waits until it is durable. The caller holds the committer's lock.
func (s *Store) apply(fill func(*pebble.Batch) error) error {
	if s.readOnly {
		return errReadOnly
	}
	if !s.use.enter() {
		return ErrClosed
	}
	defer s.use.leave()
	c := &s.commit
	if err := s.latch.Err(); err != nil {
		return err
	}
	pb := s.db.NewBatch()
	if err := fill(pb); err != nil {
		_ = pb.Close() // nothing was applied
		return err
	}
	if pb.Empty() {
		return pb.Close()
	}
	select {
	case c.work <- pb:
	case <-s.latch.Tripped():
		return s.latch.Err()
	}
	var err error
	select {
	case err = <-c.done:
	case <-s.latch.Tripped():
		return s.latch.Err() // Pebble still owns pb
	}
	if err != nil {
		return s.latch.Trip(fmt.Errorf("commit: %w", err))
	}
	if cap(c.buf) > maxIdleBuf {
		c.buf = nil
	}
	return pb.Close()
}

// maxIdleBuf is the largest encoding buffer, in bytes, that is kept between commits.
const maxIdleBuf = 1 << 20

// encode turns b into Pebble's operations. No key is in b twice, so their order is free. Removals come last: they are
// for older jobs, and Pebble inserts neighboring keys faster.
func (c *committer) encode(pb *pebble.Batch, b *record.CommitBatch) error {
	for i := range b.Changes {
		if ch := &b.Changes[i]; !ch.Gone {
			if err := c.put(pb, ch); err != nil {
				return err
			}
		}
	}
	for i := range b.Changes {
		if ch := &b.Changes[i]; ch.Gone && ch.Job == nil {
			if err := c.remove(pb, ch); err != nil {
				return err
			}
		}
	}
	for i := range b.Meta {
		c.needs = max(c.needs, record.MetaFormat(&b.Meta[i]))
		if err := c.putNamed(pb, appendMetaKey(c.buf[:0], b.Meta[i].Name), b.Meta[i].Value); err != nil {
			return err
		}
	}
	for i := range b.Documents {
		c.needs = max(c.needs, record.DocumentFormat(&b.Documents[i]))
		if err := c.putNamed(pb, appendDocumentKey(c.buf[:0], b.Documents[i].Name), b.Documents[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// put writes a change of a job.
func (c *committer) put(pb *pebble.Batch, ch *record.Change) error {
	if ch.Job != nil {
		if err := c.putJob(pb, ch); err != nil {
			return err
		}
	}
	if ch.Status != nil {
		needs := 0
		c.buf, needs = record.AppendStatus(c.buf[:0], ch.Seq, ch.Status)
		c.needs = max(c.needs, needs)
		if err := c.set(pb, c.key.of(spaceJob, ch.Seq, partStatus), c.buf); err != nil {
			return err
		}
	}
	if ch.Failure != nil {
		c.buf = record.AppendFailure(c.buf[:0], ch.Failure)
		if err := c.setPart(pb, ch.Seq, partFailure); err != nil {
			return err
		}
	}
	if ch.Outcome != nil {
		c.buf = record.AppendOutcome(c.buf[:0], ch.Outcome)
		if err := c.setPart(pb, ch.Seq, partOutcome); err != nil {
			return err
		}
	}
	for i := range ch.Timeline {
		needs := 0
		c.buf, needs = record.AppendTimelineEntry(c.buf[:0], &ch.Timeline[i].Entry)
		c.needs = max(c.needs, needs)
		if err := c.set(pb, c.key.slot(ch.Seq, ch.Timeline[i].Slot), c.buf); err != nil {
			return err
		}
	}
	return nil
}

// putJob writes a job and its body, or replaces them.
func (c *committer) putJob(pb *pebble.Batch, ch *record.Change) (err error) {
	rewritten := ch.Stored&record.Rewritten != 0
	switch body := c.key.of(spaceBody, ch.Seq, partJob); {
	case record.HasOwnBody(ch.Job) && !(rewritten && ch.KeepBody):
		err = c.set(pb, body, ch.Job.Body)
	case !record.HasOwnBody(ch.Job) && rewritten && hadOwnBody(ch):
		err = pb.Delete(body, nil)
	}
	if err != nil {
		return err
	}
	needs := 0
	c.buf, needs = record.AppendJob(c.buf[:0], ch.Job, ch.Stored)
	c.needs = max(c.needs, needs)
	return c.set(pb, c.key.of(spaceJob, ch.Seq, partJob), c.buf)
}

// hadOwnBody reports whether the store has a body under a key of its own. It decides by the size, and by Stored in case
// InlineBytes was different when the job was written.
func hadOwnBody(ch *record.Change) bool {
	return ch.Stored&record.HasBody != 0 || ch.BodyBytes > record.InlineBytes
}

// setPart writes the record in buf next to the job if it is small, otherwise to the body space.
func (c *committer) setPart(pb *pebble.Batch, seq uint64, part byte) error {
	if len(c.buf) <= record.InlineBytes {
		return c.set(pb, c.key.of(spaceJob, seq, part), c.buf)
	}
	if err := c.set(pb, c.key.of(spaceBody, seq, part), c.buf); err != nil {
		return err
	}
	return c.set(pb, c.key.of(spaceJob, seq, part), record.External)
}

// set returns an error if the batch grew too large; Pebble would panic.
func (*committer) set(pb *pebble.Batch, key, value []byte) error {
	if pb.Len()+len(key)+len(value) > record.MaxBatchBytes {
		return errBatchSize
	}
	return pb.Set(key, value, nil)
}

// remove deletes all keys of a job. A single delete is only allowed for a key that was written once. If the key was
// written twice, the older value would come back.
func (c *committer) remove(pb *pebble.Batch, ch *record.Change) error {
	seq := ch.Seq
	del := pb.SingleDelete
	if ch.Stored&record.Rewritten != 0 {
		del = pb.Delete
	}
	if err := del(c.key.of(spaceJob, seq, partJob), nil); err != nil {
		return err
	}
	if hadOwnBody(ch) {
		if err := del(c.key.of(spaceBody, seq, partJob), nil); err != nil {
			return err
		}
	}
	for _, p := range [...]struct {
		has      record.Parts
		part     byte
		external bool // may be in the body space too
	}{
		{record.HasStatus, partStatus, false},
		{record.HasFailure, partFailure, true},
		{record.HasOutcome, partOutcome, true},
	} {
		if ch.Stored&p.has == 0 {
			continue
		}
		if err := pb.Delete(c.key.of(spaceJob, seq, p.part), nil); err != nil {
			return err
		}
		if !p.external {
			continue
		}
		if err := pb.Delete(c.key.of(spaceBody, seq, p.part), nil); err != nil {
			return err
		}
	}
	for slot := range ch.TimelineSlots {
		if err := pb.Delete(c.key.slot(seq, uint16(slot)), nil); err != nil {
			return err
		}
	}
	return nil
}

// putNamed writes a metadata entry or a document; its key is in buf.
func (c *committer) putNamed(pb *pebble.Batch, key, value []byte) error {
	c.buf = key
	if value == nil {
		return pb.Delete(key, nil)
	}
	return c.set(pb, key, value)
}
