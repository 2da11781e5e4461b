package machine

import (
	"slices"
	"strings"

	"broker/core"
)

// nameTable assigns numbers, from 1, to names in use: of workers with leases, of types. A name is removed with its last user, so
// that names that occur once cost nothing later.
type nameTable struct {
	number map[string]uint32
	names  []string // by number
	refs   []int
	free   []uint32
}

func newNameTable() nameTable {
	return nameTable{number: map[string]uint32{}, names: make([]string, 1), refs: make([]int, 1)}
}

func (t *nameTable) acquire(name string) uint32 {
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
func (t *nameTable) acquireCopy(name string) uint32 {
	if t.number[name] == 0 {
		name = strings.Clone(name)
	}
	return t.acquire(name)
}

// release drops one use of a name and reports whether it was the last.
func (t *nameTable) release(n uint32) bool {
	if t.refs[n]--; t.refs[n] > 0 {
		return false
	}
	delete(t.number, t.names[n])
	t.names[n] = ""
	t.free = append(t.free, n)
	return true
}

// list lists the names in use with their numbers of users. It examines all of them.
func (t *nameTable) list(op *core.ListNames) []core.NameCount {
	found := []core.NameCount{}
	for n := 1; n < len(t.names); n++ {
		name := t.names[n]
		if t.refs[n] > 0 && strings.HasPrefix(name, op.Prefix) && (op.ByUse || op.After == "" || name > op.After) {
			found = append(found, core.NameCount{Name: name, Jobs: t.refs[n]})
		}
	}
	slices.SortFunc(found, func(a, b core.NameCount) int {
		if op.ByUse && a.Jobs != b.Jobs {
			return b.Jobs - a.Jobs
		}
		return strings.Compare(a.Name, b.Name)
	})
	if op.ByUse {
		found = found[min(max(op.Offset, 0), len(found)):]
	}
	return found[:min(len(found), pageLimit(op.Limit))]
}

// typeOf is the type of a job.
func (m *Machine) typeOf(e *entry) string {
	if e.kind == 0 {
		return m.queues[e.queue].name
	}
	return m.types.names[e.kind]
}

// setType records a job's type, which is usually its queue's name.
func (m *Machine) setType(e *entry, name string) {
	if name == "" || name == m.queues[e.queue].name {
		return
	}
	e.kind = m.types.acquire(name)
}

func (m *Machine) dropType(e *entry) {
	if e.kind != 0 {
		if m.types.release(e.kind) {
			m.meters.ForgetKind(e.kind)
		}
		e.kind = 0
	}
}
