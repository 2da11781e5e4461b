package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"broker/core/internal/record"
)

// Follower collects the changes of a store, for an index that is kept up to date: Scan reads everything once, then
// repeated calls of Changes return what has to be read again.
type Follower struct {
	s *Store

	// Guarded by s.commit.mu. The first compact numbers of jobs are sorted and have no duplicates.
	jobs    []uint64
	compact int
	meta    map[string]struct{} // names of changed metadata entries
}

// Follow starts to collect changes, until Close.
func (s *Store) Follow() *Follower {
	f := &Follower{s: s, meta: map[string]struct{}{}}
	s.commit.mu.Lock()
	defer s.commit.mu.Unlock()
	s.commit.followers = append(s.commit.followers, f)
	return f
}

// Close ends the collection. It may be called twice.
func (f *Follower) Close() {
	c := &f.s.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followers = slices.DeleteFunc(c.followers, func(o *Follower) bool { return o == f })
	f.jobs, f.compact, f.meta = nil, 0, nil
}

// note collects the changes of an applied batch. The caller holds the committer's lock.
func (c *committer) note(b *record.CommitBatch) {
	for _, f := range c.followers {
		for i := range b.Changes {
			f.jobs = append(f.jobs, b.Changes[i].Seq)
		}
		if len(f.jobs) > 2*f.compact+compactFrom {
			f.jobs = sorted(f.jobs)
			f.compact = len(f.jobs)
		}
		for i := range b.Meta {
			if _, known := f.meta[b.Meta[i].Name]; !known {
				f.meta[strings.Clone(b.Meta[i].Name)] = struct{}{}
			}
		}
	}
}

// compactFrom is how many numbers may be collected before duplicates are removed.
const compactFrom = 1 << 16

// sorted sorts numbers and removes duplicates.
func sorted(seqs []uint64) []uint64 {
	slices.Sort(seqs)
	return slices.Compact(seqs)
}

// Changes is the state of a store after one entry, and the list of changes up to then. It must be closed.
type Changes struct {
	Jobs     []uint64 // numbers of jobs that were added, changed or removed, in order
	Meta     []string // names of metadata entries that were set or removed, in order
	Position record.Position

	s  *Store
	it *pebble.Iterator
}

// Changes returns the changes since the last call, or since Follow.
func (f *Follower) Changes() (*Changes, error) {
	s, c := f.s, &f.s.commit
	if !s.use.enter() {
		return nil, ErrClosed
	}
	c.mu.Lock()
	it, err := s.db.NewIter(nil)
	x := &Changes{Position: c.last, s: s, it: it}
	jobs, meta := f.jobs, f.meta
	if err == nil {
		f.jobs, f.compact, f.meta = nil, 0, map[string]struct{}{}
	}
	c.mu.Unlock()
	if err != nil {
		s.use.leave()
		return nil, s.damage("read changes", err)
	}
	x.Jobs, x.Meta = sorted(jobs), slices.Sorted(maps.Keys(meta)) // done without the lock, so commits do not wait
	return x, nil
}

// Close frees the resources of the changes.
func (x *Changes) Close() error {
	defer x.s.use.leave()
	return x.s.damage("read changes", x.it.Close())
}

// MetaEntry reads a metadata entry, or returns ErrMissing.
func (x *Changes) MetaEntry(name string) ([]byte, error) {
	value, err := getAt(x.it, appendMetaKey(nil, name))
	if err != nil {
		return nil, x.s.damage("read metadata", err)
	}
	return value, nil
}

// Records calls each, as Scan does, for the given jobs that exist. The numbers must be in order.
func (x *Changes) Records(ctx context.Context, seqs []uint64, each func(*record.Record) error) error {
	sc := scanner{s: x.s, it: x.it, each: each, names: record.NewInterner()}
	var k jobKey
	found := uint64(0) // number of the job at which the iterator is
	for i, seq := range seqs {
		if i%scanTick == scanTick-1 && ctx.Err() != nil {
			return ctx.Err()
		}
		if seq < found {
			continue // the job is gone: the iterator has found a later one
		}
		if seq > found {
			if !x.it.SeekGE(k.of(spaceJob, seq, partJob)) || x.it.Key()[0] != spaceJob {
				break
			}
		}
		if err := sc.takeJob(seq, &found); err != nil {
			return err
		}
	}
	return x.s.damage("read changes", x.it.Error())
}

// takeJob passes on the job at the iterator if it is the wanted job, and moves to the next job. found is set to the
// number of the job at the iterator.
func (sc *scanner) takeJob(want uint64, found *uint64) error {
	for ok := true; ok; ok = sc.it.Next() {
		key := sc.it.Key()
		if key[0] != spaceJob {
			*found = 1<<64 - 1
			break
		}
		seq, part, valid := parseKey(key)
		if !valid {
			return sc.damage("read changes", fmt.Errorf("key %x: %w", key, record.ErrRange))
		}
		if *found = seq; seq != want {
			break
		}
		value, err := sc.it.ValueAndErr()
		if err == nil {
			err = sc.take(seq, part, value)
		}
		if err != nil {
			return sc.damage(fmt.Sprintf("read changes of job %d", seq), err)
		}
	}
	return errors.Join(sc.flush(), sc.it.Error())
}
