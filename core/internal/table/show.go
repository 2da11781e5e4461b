package table

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"broker/core/internal/queue"
)

// The functions of this file are for comparisons in tests. They are not methods, so that the linker leaves them out of
// the program.

// IsFound reports whether a job is found by its id, and by its unique key.
func IsFound(t *Table, h uint32) [2]bool {
	e := t.At(h)
	return [2]bool{t.byID[e.ID] == h, e.Unique != (Digest{}) && t.FindHolder(e.Queue, e.Unique) == h}
}

// ShowMeta lists the meta entries.
func ShowMeta(t *Table) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.meta)) {
		fmt.Fprintf(&b, " meta %s %q", name, t.meta[name])
	}
	return b.String()
}

// ShowNumbers shows which numbers come next.
func ShowNumbers(t *Table) string {
	return fmt.Sprintf("next %d reserved %d open %d durable %d place %v", t.NextSeq, t.reserved, t.Open, t.Durable,
		t.FirstPlace)
}

// Seqs are the numbers of the jobs of a list.
func Seqs(t *Table, l *queue.List) []uint64 {
	all := []uint64{}
	for _, h := range l.Slice(0, l.Len(), nil) {
		all = append(all, t.At(h).Seq)
	}
	return all
}

// ShowWindows shows everything about windows that affects decisions.
func ShowWindows(t *Table) string {
	var all []string
	for w := range t.windows.all.All() {
		all = append(all, fmt.Sprint(w.Seq, w.ID, w.CreatedAt, w.until))
	}
	slices.Sort(all)
	return fmt.Sprintf(" windows %v", all)
}
