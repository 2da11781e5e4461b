package rescue

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Parts are the tables and commits of a store whose manifest is lost. The newest value of a key counts.
type Parts struct {
	fsys   vfs.FS
	path   func(table uint64) string
	tables map[uint64]Table // by number
	logged []entry          // by key, newest first
}

// entry is one of the values that a key has had.
type entry struct {
	sstable.InternalKey
	value []byte
}

func (e entry) compare(o entry) int {
	return cmp.Or(bytes.Compare(e.UserKey, o.UserKey), cmp.Compare(o.Trailer, e.Trailer))
}

// NewParts puts tables, by number, and the commits of logs together.
func NewParts(
	fsys vfs.FS, path func(table uint64) string, tables map[uint64]Table, commits [][]byte,
) (*Parts, error) {
	p := &Parts{fsys: fsys, path: path, tables: tables}
	for _, commit := range commits {
		h, _ := batchrepr.ReadHeader(commit)
		seq := h.SeqNum
		for r := batchrepr.Read(commit); len(r) > 0; {
			kind, key, value, ok, err := r.Next()
			if err != nil || !ok {
				return nil, fmt.Errorf("read commit %d: %w", h.SeqNum, cmp.Or(err, errors.New("it ends early")))
			}
			if kind == pebble.InternalKeyKindLogData {
				continue
			}
			p.logged = append(p.logged, entry{pebble.MakeInternalKey(key, seq, kind), value})
			seq++
		}
	}
	slices.SortFunc(p.logged, entry.compare)
	return p, nil
}

// Each calls each for the keys that exist from lower to upper, without upper, in order. Keys and values are valid
// during the call.
func (p *Parts) Each(lower, upper []byte, each func(key, value []byte) error) (err error) {
	var m merge
	inside := func(key []byte) bool {
		return bytes.Compare(key, lower) >= 0 && bytes.Compare(key, upper) < 0
	}
	add := func(number uint64, all iter.Seq[entry]) (stop func()) {
		next, stop := iter.Pull(all)
		if first, ok := next(); ok {
			m = append(m, stream{first, next, number})
		}
		return stop
	}
	for number, t := range p.tables {
		if bytes.Compare(t.Smallest.UserKey, upper) >= 0 || bytes.Compare(t.Largest.UserKey, lower) < 0 {
			continue
		}
		defer add(number, func(yield func(entry) bool) {
			_, readErr := ReadTable(p.fsys, p.path(number), func(key sstable.InternalKey, value []byte) error {
				if inside(key.UserKey) && !yield(entry{key, value}) {
					return errStop
				}
				return nil
			})
			if readErr != nil && !errors.Is(readErr, errStop) {
				err = errors.Join(err, fmt.Errorf("read %s: %w", p.path(number), readErr))
			}
		})()
	}
	defer add(math.MaxUint64, func(yield func(entry) bool) {
		for _, e := range p.logged {
			if inside(e.UserKey) && !yield(e) {
				return
			}
		}
	})()
	heap.Init(&m)
	return errors.Join(m.each(each), err)
}

var errStop = errors.New("no more entries are wanted")

// stream is a sequence of entries in order, of which one was read ahead.
type stream struct {
	entry
	next   func() (entry, bool)
	number uint64 // of the table
}

// merge is a heap of streams.
type merge []stream

func (m merge) Len() int      { return len(m) }
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }

// Less implements heap.Interface. Compactions set the numbers of old commits to zero; then the newer table counts.
func (m merge) Less(i, j int) bool {
	return cmp.Or(m[i].compare(m[j].entry), cmp.Compare(m[j].number, m[i].number)) < 0
}

// Push implements heap.Interface.
func (m *merge) Push(x any) { *m = append(*m, x.(stream)) }

// Pop implements heap.Interface.
func (m *merge) Pop() any {
	old := *m
	last := old[len(old)-1]
	*m = old[:len(old)-1]
	return last
}

// each passes on the newest value of every key.
func (m *merge) each(each func(key, value []byte) error) error {
	var last []byte // the newest entry of this key was seen
	for first := true; len(*m) > 0; first = false {
		s := &(*m)[0]
		if first || !bytes.Equal(s.UserKey, last) {
			last = append(last[:0], s.UserKey...)
			if k := s.Kind(); k == pebble.InternalKeyKindSet || k == pebble.InternalKeyKindSetWithDelete {
				if err := each(s.UserKey, s.value); err != nil {
					return err
				}
			}
		}
		var ok bool
		if s.entry, ok = s.next(); ok {
			heap.Fix(m, 0)
		} else {
			heap.Pop(m)
		}
	}
	return nil
}
