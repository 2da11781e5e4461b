package table

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"broker/core/internal/queue"
)

// AllQueues are the names of all queues, in order.
func (t *Table) AllQueues() (names []string) {
	for _, n := range t.SortedQueues() {
		names = append(names, t.queues[n].Name)
	}
	return names
}

// IsFound reports whether a job is found by its id, and by its unique key.
func (t *Table) IsFound(h uint32) [2]bool {
	e := t.At(h)
	return [2]bool{t.byID[e.ID] == h, e.Unique != (Digest{}) && t.FindLock(e.Queue, e.Unique) == h}
}

// ShowMeta lists the meta entries.
func (t *Table) ShowMeta() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.meta)) {
		fmt.Fprintf(&b, " meta %s %q", name, t.meta[name])
	}
	return b.String()
}

// ShowNumbers shows which numbers come next.
func (t *Table) ShowNumbers() string {
	return fmt.Sprintf("next %d reserved %d open %d durable %d place %v", t.NextSeq, t.reserved, t.Open, t.Durable, t.FirstPlace)
}

// Seqs are the numbers of the jobs of a list.
func (t *Table) Seqs(l *queue.List) []uint64 {
	all := []uint64{}
	for _, h := range l.Slice(0, l.Len(), nil) {
		all = append(all, t.At(h).Seq)
	}
	return all
}
