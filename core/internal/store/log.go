package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Key spaces of a Log. On disk; never changed.
const (
	spaceEntry = 'l' // index, 8 bytes: an entry of the log
	spaceVote  = 'w' // name: a value that a member must remember in addition to the log
)

// Log keeps the entries of a replicated log, and a few other values, in a folder of its own, which is checked for
// damage like a store. It does not interpret the entries. Any goroutine may call its methods.
type Log struct {
	s           *Store
	first, last uint64 // guarded by s.commit.mu; zero: empty
	bytes       uint64 // guarded likewise: approximate size of the entries
}

// OpenLog opens or creates the log in a folder.
func OpenLog(o Options) (*Log, error) {
	s, err := Open(o)
	if err != nil {
		return nil, err
	}
	l := &Log{s: s}
	if err := l.bounds(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return l, nil
}

// Close releases the folder.
func (l *Log) Close() error { return l.s.Close() }

// Failed is closed when a write has failed; Err has the reason.
func (l *Log) Failed() <-chan struct{} { return l.s.Failed() }

// Err is nil until a write fails.
func (l *Log) Err() error { return l.s.Err() }

// FreeBytes returns the free disk space.
func (l *Log) FreeBytes() (uint64, error) { return l.s.FreeBytes() }

// bounds finds the first and the last index, and the size of the entries.
func (l *Log) bounds() error {
	it, err := l.s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceEntry}, UpperBound: []byte{spaceEntry + 1}})
	if err != nil {
		return l.s.damage("look for the ends of the log", err)
	}
	if it.First() {
		l.first = binary.BigEndian.Uint64(it.Key()[1:])
	}
	if it.Last() {
		l.last = binary.BigEndian.Uint64(it.Key()[1:])
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return l.s.damage("look for the ends of the log", err)
	}
	if l.first == 0 {
		return nil
	}
	var k jobKey
	var to jobKey
	l.bytes, err = l.s.db.EstimateDiskUsage(k.of(spaceEntry, l.first, 0), to.of(spaceEntry, l.last+1, 0))
	return l.s.damage("measure the log", err)
}

// Bounds are the first and the last index; zero if the log is empty.
func (l *Log) Bounds() (first, last uint64) {
	l.s.commit.mu.Lock()
	defer l.s.commit.mu.Unlock()
	return l.first, l.last
}

// Bytes returns the approximate size of all entries.
func (l *Log) Bytes() uint64 {
	l.s.commit.mu.Lock()
	defer l.s.commit.mu.Unlock()
	return l.bytes
}

// Append makes entries durable under the indexes from first on. It replaces existing entries.
func (l *Log) Append(first uint64, entries [][]byte) error {
	if len(entries) == 0 {
		return nil
	}
	c := &l.s.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	size := uint64(0)
	err := l.s.apply(func(pb *pebble.Batch) error {
		for i, e := range entries {
			size += uint64(len(e))
			if err := c.set(pb, c.key.of(spaceEntry, first+uint64(i), 0), e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("append to the log: %w", err)
	}
	if l.first == 0 || first < l.first {
		l.first = first
	}
	l.last = max(l.last, first+uint64(len(entries))-1)
	l.bytes += size
	return nil
}

// Entry reads an entry, or ErrMissing.
func (l *Log) Entry(index uint64) ([]byte, error) {
	var k jobKey
	value, err := l.s.get(k.of(spaceEntry, index, 0))
	if err != nil {
		return nil, l.s.damage(fmt.Sprintf("read entry %d of the log", index), err)
	}
	return value, nil
}

// Remove removes the entries from index low to index high: either all up to high, or all from low on.
func (l *Log) Remove(low, high uint64) error {
	c := &l.s.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high = max(low, l.first), min(high, l.last)
	if l.first == 0 || low > high {
		return nil
	}
	part := float64(high-low+1) / float64(l.last-l.first+1)
	err := l.s.apply(func(pb *pebble.Batch) error {
		var from, to jobKey
		return pb.DeleteRange(from.of(spaceEntry, low, 0), to.of(spaceEntry, high+1, 0), nil)
	})
	if err != nil {
		return fmt.Errorf("shorten the log: %w", err)
	}
	l.bytes -= uint64(part * float64(l.bytes))
	switch {
	case low == l.first && high == l.last:
		l.first, l.last, l.bytes = 0, 0, 0
	case low == l.first:
		l.first = high + 1
	default:
		l.last = low - 1
	}
	return nil
}

// SetValue makes a value durable under a name.
func (l *Log) SetValue(name, value []byte) error {
	c := &l.s.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.s.apply(func(pb *pebble.Batch) error { return c.set(pb, append([]byte{spaceVote}, name...), value) })
}

// Value reads what SetValue has written; nil if there is none.
func (l *Log) Value(name []byte) ([]byte, error) {
	value, err := l.s.get(append([]byte{spaceVote}, name...))
	if errors.Is(err, ErrMissing) {
		return nil, nil
	}
	return value, l.s.damage(fmt.Sprintf("read value %s of the log", name), err)
}
