package table

import (
	"maps"
	"slices"
	"strings"
)

// NameTable assigns numbers, from 1, to names in use, such as workers with leases, and types. A name is removed with
// its last user, so one-off names do not leak memory.
type NameTable struct {
	number map[string]uint32
	names  []string // by number
	refs   []int
	free   []uint32
}

func newNameTable() NameTable {
	return NameTable{number: map[string]uint32{}, names: make([]string, 1), refs: make([]int, 1)}
}

func (t *NameTable) acquire(name string) uint32 {
	n, ok := t.number[name]
	if !ok {
		if k := len(t.free); k > 0 {
			n, t.free = t.free[k-1], t.free[:k-1]
			t.names[n] = name
		} else {
			n = uint32(len(t.names))
			t.names, t.refs = append(t.names, name), append(t.refs, 0)
		}
		t.number[name] = n
	}
	t.refs[n]++
	return n
}

// acquireCopy is acquire for a name that may be part of a large or reused buffer.
func (t *NameTable) acquireCopy(name string) uint32 {
	if t.number[name] == 0 {
		name = strings.Clone(name)
	}
	return t.acquire(name)
}

// release drops one use of a name and reports whether it was the last.
func (t *NameTable) release(n uint32) bool {
	if t.refs[n]--; t.refs[n] > 0 {
		return false
	}
	delete(t.number, t.names[n])
	t.names[n] = ""
	t.free = append(t.free, n)
	return true
}

// TypeOf is the type of a job.
func (t *Table) TypeOf(e *Entry) string {
	if e.Kind == 0 {
		return t.queues[e.Queue].Name
	}
	return t.Types.NameOf(e.Kind)
}

// SetType records a job's type, which is usually its queue's name.
func (t *Table) SetType(e *Entry, name string) {
	if name == "" || name == t.queues[e.Queue].Name {
		return
	}
	e.Kind = t.Types.acquire(name)
}

// ReleaseType ends a job's use of the name of its type, and reports whether that was the last.
func (t *Table) ReleaseType(e *Entry) bool { return t.Types.release(e.Kind) }

// NumberOf is the number of a name; zero: it is not in use.
func (t *NameTable) NumberOf(name string) uint32 { return t.number[name] }

// NameOf is the name with a number; empty for zero.
func (t *NameTable) NameOf(n uint32) string { return t.names[n] }

// All are the names in use, in order; for tests.
func (t *NameTable) All() []string { return slices.Sorted(maps.Keys(t.number)) }

// Last is the highest number so far.
func (t *NameTable) Last() uint32 { return uint32(len(t.names) - 1) }
