package table

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"broker/core/internal/queue"
)

// queueNames keeps the numbers of all queues sorted by name. New queues are sorted in together, once there are
// maxUnsorted or when the names are listed: one search for each would take longer than all other work for a new queue.
type queueNames struct {
	of       []string // by number: a search in the queues themselves would touch a page of memory with each step
	sorted   queue.List
	unsorted []uint32
	hidden   int // queues that are not listed

	// folded lists the queues whose name is not what foldName makes of it, by that, in order of names.
	folded map[string][]uint32 // nil: there is none
}

const maxUnsorted = 256

func (t *Table) addName(n uint32, name string) {
	x := &t.inOrder
	if int(n) >= len(x.of) {
		x.of = append(x.of, make([]string, int(n)+1-len(x.of))...)
	}
	x.of[n] = name
	if folded := foldName(name); folded != name {
		at, _ := x.foldedAt(folded, name)
		if x.folded == nil {
			x.folded = map[string][]uint32{}
		}
		x.folded[folded] = slices.Insert(x.folded[folded], at, n)
	}
	if x.unsorted = append(x.unsorted, n); len(x.unsorted) == maxUnsorted {
		t.sortNames()
	}
}

func (t *Table) removeName(n uint32) {
	x := &t.inOrder
	if i := slices.Index(x.unsorted, n); i >= 0 {
		x.unsorted = slices.Delete(x.unsorted, i, i+1)
	} else {
		x.sorted.Remove(n, t.byName)
	}
	if folded := foldName(x.of[n]); folded != x.of[n] {
		at, _ := x.foldedAt(folded, x.of[n])
		if x.folded[folded] = slices.Delete(x.folded[folded], at, at+1); len(x.folded[folded]) == 0 {
			delete(x.folded, folded)
		}
	}
	x.of[n] = ""
}

// foldedAt is the place of a name among those that are equal ignoring case.
func (x *queueNames) foldedAt(folded, name string) (at int, found bool) {
	return slices.BinarySearchFunc(x.folded[folded], name, func(n uint32, name string) int {
		return strings.Compare(x.of[n], name)
	})
}

// sortNames returns the list of all queues by name.
func (t *Table) sortNames() *queue.List {
	x := &t.inOrder
	slices.SortFunc(x.unsorted, func(a, b uint32) int { return strings.Compare(x.of[a], x.of[b]) })
	for _, n := range x.unsorted {
		x.sorted.Push(n, t.byName)
	}
	x.unsorted = x.unsorted[:0]
	return &x.sorted
}

// Hide removes a queue from lists until a client names it or a job is ready in it.
func (t *Table) Hide(n uint32) {
	if q := t.queues[n]; !q.Hidden {
		q.Hidden = true
		t.inOrder.hidden++
	}
}

// Show undoes Hide.
func (t *Table) Show(n uint32) {
	if q := t.queues[n]; q.Hidden {
		q.Hidden = false
		t.inOrder.hidden--
	}
}

func (t *Table) nameBefore(a, b uint32) bool { return t.inOrder.of[a] < t.inOrder.of[b] }

// SortedQueues returns the numbers of all queues in byte order of their names.
func (t *Table) SortedQueues() []uint32 { return t.sortNames().Slice(0, t.QueueCount(), nil) }

// QueueFold is the first queue with this name ignoring case, or zero.
func (t *Table) QueueFold(name string) uint32 {
	folded := foldName(name)
	first := t.names[folded]
	if others := t.inOrder.folded[folded]; len(others) > 0 && (first == 0 || t.nameBefore(others[0], first)) {
		first = others[0]
	}
	return first
}

// foldName returns the same text for all texts that are equal ignoring case: for UTF-8 texts, those for which
// strings.EqualFold is true. For most names it is the name itself.
func foldName(name string) string {
	for i := range len(name) {
		if c := name[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return foldRest(name, i)
		}
	}
	return name
}

// foldRest is foldName for a name whose bytes before from do not change.
func foldRest(name string, from int) string {
	folded := []byte(name[:from])
	for i := from; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		switch least := foldRune(r, size, name[i]); {
		case least > utf8.MaxRune:
			folded = append(folded, name[i])
		case 'A' <= least && least <= 'Z':
			folded = append(folded, byte(least)|0x20)
		default:
			folded = utf8.AppendRune(folded, least)
		}
		i += size
	}
	return string(folded)
}

// foldRune returns the smallest character that equals r ignoring case. A byte that is not UTF-8 (first, for a RuneError
// of size 1) counts as a separate character.
func foldRune(r rune, size int, first byte) rune {
	if r == utf8.RuneError && size == 1 {
		return utf8.MaxRune + 1 + rune(first)
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}

// RowsAtOnce returns how many rows to allocate for a list with a limit.
func (t *Table) RowsAtOnce(limit int) int {
	rows := min(t.QueueCount()-t.inOrder.hidden, maxRowsAtOnce)
	if limit <= 0 {
		return rows
	}
	return min(limit, rows)
}

// EachRow calls visit for the queues that are not hidden, whose names start with prefix and come after after, from an
// offset, at most limit; zero: all.
func (t *Table) EachRow(prefix, after string, offset, limit int, visit func(n uint32)) {
	l := t.sortNames()
	from := l.Search(func(n uint32) bool {
		name := t.inOrder.of[n]
		return name < prefix || after != "" && name <= after
	})
	if t.inOrder.hidden == 0 { // the usual case: rows before the offset need no look
		from, offset = from+offset, 0
	}
	if limit <= 0 {
		limit = l.Len()
	}
	for numbers := l.Slice(from, queuePage, nil); len(numbers) > 0; numbers = l.Slice(from, queuePage, numbers[:0]) {
		for _, n := range numbers {
			switch q := t.queues[n]; {
			case limit == 0 || !strings.HasPrefix(t.inOrder.of[n], prefix):
				return
			case q.Hidden:
			case offset > 0:
				offset--
			default:
				limit--
				visit(n)
			}
		}
		from += len(numbers)
	}
}

// QueuesWith returns the queues whose names have a prefix, in order of names.
func (t *Table) QueuesWith(prefix string) []uint32 {
	l := t.sortNames()
	from := l.Search(func(n uint32) bool { return t.inOrder.of[n] < prefix })
	to := l.Search(func(n uint32) bool {
		name := t.inOrder.of[n]
		return name < prefix || strings.HasPrefix(name, prefix)
	})
	return l.Slice(from, to-from, []uint32{})
}

// queuePage is how many queues a list looks up at once. maxRowsAtOnce limits how many rows are allocated at once.
const (
	queuePage     = 256
	maxRowsAtOnce = 1024
)

// QueuesFrom are the queues from a name on, in order.
func (t *Table) QueuesFrom(name string) []uint32 {
	l := t.sortNames()
	from := l.Search(func(n uint32) bool { return t.inOrder.of[n] < name })
	return l.Slice(from, l.Len()-from, nil)
}

// QueuesUpTo are the queues up to a name, in order.
func (t *Table) QueuesUpTo(name string) []uint32 {
	l := t.sortNames()
	return l.Slice(0, l.Search(func(n uint32) bool { return t.inOrder.of[n] <= name }), nil)
}
