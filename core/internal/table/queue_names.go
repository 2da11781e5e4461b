package table

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"broker/core/internal/queue"
)

// queueNames keeps the numbers of queues sorted by name. With hundreds of thousands of queues, adding a queue and listing a page
// are still cheap.
type queueNames struct {
	all    queue.List // by name
	rows   queue.List // visible queues, by name
	folded queue.List // all queues, by name ignoring case, then by name
}

// Hide removes a queue from lists until a client names it or a job is ready in it.
func (t *Table) Hide(n uint32) {
	q := t.queues[n]
	if !q.Hidden {
		q.Hidden = true
		t.inOrder.rows.Remove(n, t.byName)
	}
}

// Show undoes Hide.
func (t *Table) Show(n uint32) {
	q := t.queues[n]
	if q.Hidden {
		q.Hidden = false
		t.inOrder.rows.Push(n, t.byName)
	}
}

func (t *Table) nameBefore(a, b uint32) bool { return t.queues[a].Name < t.queues[b].Name }

func (t *Table) foldedNameBefore(a, b uint32) bool {
	x, y := t.queues[a].Name, t.queues[b].Name
	if c := CompareFold(x, y); c != 0 {
		return c < 0
	}
	return x < y
}

// SortedQueues returns the numbers of all queues in byte order of their names.
func (t *Table) SortedQueues() []uint32 { return t.inOrder.all.Slice(0, t.inOrder.all.Len(), nil) }

// QueueFold is the first queue with this name ignoring case, or zero.
func (t *Table) QueueFold(name string) uint32 {
	before := func(n uint32) bool { return CompareFold(t.queues[n].Name, name) < 0 }
	n := t.inOrder.folded.At(t.inOrder.folded.Search(before))
	if n == 0 || CompareFold(t.queues[n].Name, name) != 0 {
		return 0
	}
	return n
}

// CompareFold compares texts ignoring case. For UTF-8 texts, it is zero if strings.EqualFold is true.
func CompareFold(a, b string) int {
	for a != "" && b != "" {
		x, i := utf8.DecodeRuneInString(a)
		y, j := utf8.DecodeRuneInString(b)
		if x != y || x == utf8.RuneError {
			if c := int(foldRune(x, i, a[0])) - int(foldRune(y, j, b[0])); c != 0 {
				return c
			}
		}
		a, b = a[i:], b[j:]
	}
	return len(a) - len(b)
}

// foldRune returns the smallest character that equals r ignoring case. A byte that is not UTF-8 (first, for a RuneError of
// size 1) counts as a separate character after all others.
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
	if limit <= 0 {
		limit = t.inOrder.rows.Len()
	}
	return min(limit, t.inOrder.rows.Len(), maxRowsAtOnce)
}

// EachRow calls visit for the listed queues whose names start with prefix and come after after, from an offset, at most
// limit; zero: all.
func (t *Table) EachRow(prefix, after string, offset, limit int, visit func(n uint32)) {
	from := t.inOrder.rows.Search(func(n uint32) bool {
		name := t.queues[n].Name
		return name < prefix || after != "" && name <= after
	}) + offset
	if limit <= 0 {
		limit = t.inOrder.rows.Len()
	}
	for numbers := []uint32(nil); limit > 0; limit -= len(numbers) {
		numbers = t.inOrder.rows.Slice(from, min(limit, queuePage), numbers[:0])
		for _, n := range numbers {
			if !strings.HasPrefix(t.queues[n].Name, prefix) {
				return
			}
			visit(n)
		}
		if len(numbers) == 0 {
			return
		}
		from += len(numbers)
	}
}

// QueuesWith returns the queues whose names have a prefix, in order of names.
func (t *Table) QueuesWith(prefix string) []uint32 {
	l := &t.inOrder.all
	from := l.Search(func(n uint32) bool { return t.queues[n].Name < prefix })
	to := l.Search(func(n uint32) bool {
		name := t.queues[n].Name
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
	l := &t.inOrder.all
	from := l.Search(func(n uint32) bool { return t.queues[n].Name < name })
	return l.Slice(from, l.Len()-from, nil)
}

// QueuesUpTo are the queues up to a name, in order.
func (t *Table) QueuesUpTo(name string) []uint32 {
	l := &t.inOrder.all
	return l.Slice(0, l.Search(func(n uint32) bool { return t.queues[n].Name <= name }), nil)
}
