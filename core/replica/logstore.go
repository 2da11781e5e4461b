package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/internal/record"
	"broker/core/internal/store"
)

// logVersion is the first byte of an entry of the log on disk.
const logVersion = 1

// recentBytes limits the entries kept in memory for followers that do not have them yet.
const recentBytes = 8 << 20

// logStore is raft's log and vote, in a store.Log.
//
//	version │ type │ term │ time, ns │ n, extensions │ data      numbers are varints
type logStore struct {
	log         *store.Log
	now         func() time.Duration // nil: the time of writes is not measured
	writing     stopwatch
	meter       writeMeter // of the same writes
	beforeWrite func()     // see Options

	writeTakes func() time.Duration // see Options

	encoded [][]byte // buffers for entries that are written; only raft's main goroutine writes

	// anchor returns the last entry of the newest snapshot while this node does not lead; see GetLog. It may be nil.
	anchor func() (index, term uint64, ok bool)

	// removable returns the last entry up to which the beginning of the log may be removed: raft counts the entries
	// that it keeps from the end of the log, which grows meanwhile. It may be nil.
	removable func(first, high uint64) uint64

	mu     sync.Mutex // guards the fields below
	recent []*raft.Log
	bytes  int
}

// FirstIndex implements raft.LogStore.
func (s *logStore) FirstIndex() (uint64, error) {
	first, _ := s.log.Bounds()
	return first, nil
}

// LastIndex implements raft.LogStore.
func (s *logStore) LastIndex() (uint64, error) {
	_, last := s.log.Bounds()
	return last, nil
}

// IsMonotonic implements raft.MonotonicLogStore: the log has no gaps.
func (s *logStore) IsMonotonic() bool { return true }

// anchorType marks the entry that a snapshot ends with: its term is known, its content is in the snapshot. It is never
// stored.
const anchorType raft.LogType = 255

// GetLog implements raft.LogStore.
//
// raft checks the entry before the entries that a leader sends. If that entry is the last one of a snapshot and this
// node's log has later entries, raft looks for it in the log and does not find it. A former leader whose last entries
// were not replicated would refuse the entries of every new leader, get a copy, and refuse again. So while a node
// follows, GetLog returns that entry, without its content. A leader does not return it, because it would send it to
// other members.
func (s *logStore) GetLog(index uint64, into *raft.Log) error {
	if s.fromRecent(index, into) {
		return nil
	}
	b, err := s.log.Entry(index)
	if errors.Is(err, store.ErrMissing) {
		if s.anchor != nil {
			if at, term, ok := s.anchor(); ok && at == index {
				*into = raft.Log{Index: index, Term: term, Type: anchorType}
				return nil
			}
		}
		return raft.ErrLogNotFound
	}
	if err != nil {
		return err
	}
	if err := decodeLog(b, index, into); err != nil {
		return fmt.Errorf("entry %d of the log: %w", index, err)
	}
	return nil
}

func (s *logStore) fromRecent(index uint64, into *raft.Log) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) == 0 || index < s.recent[0].Index || index > s.recent[len(s.recent)-1].Index {
		return false
	}
	*into = *s.recent[index-s.recent[0].Index]
	return true
}

// StoreLog implements raft.LogStore.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *logStore) StoreLogs(logs []*raft.Log) error {
	encoded := slices.Grow(s.encoded[:0], len(logs))[:len(logs)]
	for i, l := range logs {
		if l.Type == anchorType { // sent by a leader that has just been replaced
			return fmt.Errorf("entry %d of the log has no content", l.Index)
		}
		if i > 0 && l.Index != logs[i-1].Index+1 {
			return fmt.Errorf("entry %d of the log after %d", l.Index, logs[i-1].Index)
		}
		encoded[i] = appendLog(encoded[i][:0], l)
	}
	err := s.append(logs[0].Index, encoded)
	if s.keepBuffers(encoded); err != nil {
		s.forget(0)
		return err
	}
	s.remember(logs)
	return nil
}

// keepBuffers keeps the buffers of a write for the next one, unless they are large.
func (s *logStore) keepBuffers(encoded [][]byte) {
	total := 0
	for _, b := range encoded {
		total += cap(b)
	}
	if s.encoded = encoded; total > maxIdleBuf {
		s.encoded = nil
	}
}

// append writes entries and measures the time for watchHang and for slowness.
func (s *logStore) append(first uint64, encoded [][]byte) error {
	if s.now != nil {
		began := s.now()
		s.writing.start(began)
		defer func() {
			s.writing.stop()
			took := s.now() - began
			if s.writeTakes != nil {
				took += s.writeTakes()
			}
			s.meter.add(took)
		}()
	}
	if s.beforeWrite != nil {
		s.beforeWrite()
	}
	return s.log.Append(first, encoded)
}

// remember keeps entries that were just written.
func (s *logStore) remember(logs []*raft.Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.recent); n > 0 && s.recent[n-1].Index+1 != logs[0].Index {
		s.recent, s.bytes = nil, 0
	}
	for _, l := range logs {
		s.recent = append(s.recent, l)
		s.bytes += len(l.Data)
	}
	drop := 0
	for s.bytes > recentBytes && drop < len(s.recent)-1 {
		s.bytes -= len(s.recent[drop].Data)
		drop++
	}
	if drop > 0 {
		clear(s.recent[:drop])
		s.recent = s.recent[drop:]
	}
}

// forget drops the entries in memory from index low on.
func (s *logStore) forget(low uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.recent) > 0 && s.recent[len(s.recent)-1].Index >= low {
		last := len(s.recent) - 1
		s.bytes -= len(s.recent[last].Data)
		s.recent[last] = nil
		s.recent = s.recent[:last]
	}
}

// DeleteRange implements raft.LogStore.
func (s *logStore) DeleteRange(low, high uint64) error {
	if first, last := s.log.Bounds(); s.removable != nil && low <= first && high < last {
		if high = s.removable(first, high); high < low {
			return nil
		}
	}
	// a conflict removes the end; if the beginning is removed, the remaining entries can be read from disk
	s.forget(low)
	return s.log.Remove(low, high)
}

// Set implements raft.StableStore.
func (s *logStore) Set(key, value []byte) error { return s.log.SetValue(key, value) }

// Get implements raft.StableStore.
func (s *logStore) Get(key []byte) ([]byte, error) { return s.log.Value(key) }

// SetUint64 implements raft.StableStore.
func (s *logStore) SetUint64(key []byte, v uint64) error {
	return s.log.SetValue(key, binary.BigEndian.AppendUint64(nil, v))
}

// GetUint64 implements raft.StableStore.
func (s *logStore) GetUint64(key []byte) (uint64, error) {
	b, err := s.log.Value(key)
	if err != nil || b == nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("value %s of the log: %w", key, record.ErrRange)
	}
	return binary.BigEndian.Uint64(b), nil
}

func appendLog(b []byte, l *raft.Log) []byte {
	b = slices.Grow(b, 32+len(l.Extensions)+len(l.Data))
	b = append(b, logVersion, byte(l.Type))
	b = binary.AppendUvarint(b, l.Term)
	at := int64(0)
	if !l.AppendedAt.IsZero() {
		at = l.AppendedAt.UnixNano()
	}
	b = binary.AppendVarint(b, at)
	b = binary.AppendUvarint(b, uint64(len(l.Extensions)))
	b = append(b, l.Extensions...)
	return append(b, l.Data...)
}

func decodeLog(b []byte, index uint64, into *raft.Log) error {
	if len(b) < 2 {
		return record.ErrTruncated
	}
	if b[0] != logVersion {
		return fmt.Errorf("version %d: %w", b[0], record.ErrNewerFormat)
	}
	*into = raft.Log{Index: index, Type: raft.LogType(b[1])}
	b = b[2:]
	term, n := binary.Uvarint(b)
	if n <= 0 {
		return record.ErrTruncated
	}
	b = b[n:]
	at, n := binary.Varint(b)
	if n <= 0 {
		return record.ErrTruncated
	}
	b = b[n:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return record.ErrTruncated
	}
	b = b[n:]
	into.Term = term
	if at != 0 {
		into.AppendedAt = time.Unix(0, at)
	}
	if size > 0 {
		into.Extensions = b[:size:size]
	}
	into.Data = b[size:]
	return nil
}
