package table

import "maps"

// maxCollected limits the chunks kept for the result of one job, MaxCollectedTotal the chunks of all jobs. Beyond these
// limits, the result of a job has only the bytes of the completion.
const (
	maxCollected      = 64 << 20
	MaxCollectedTotal = 256 << 20
)

// Collect keeps a chunk of a job's result.
func (t *Table) Collect(n *Transient, data []byte) {
	if n.TooMuch = n.TooMuch || len(n.Data)+len(data) > maxCollected ||
		t.Collected+len(data) > MaxCollectedTotal; n.TooMuch {
		t.DropCollected(n)
		return
	}
	n.Data = append(n.Data, data...)
	t.Collected += len(data)
}

// DropCollected forgets the chunks of a job's result.
func (t *Table) DropCollected(n *Transient) {
	t.Collected -= len(n.Data)
	n.Data = nil
}

// Slices and maps with room for more than keptRoom entries are freed when they are hardly used any more.
const keptRoom = 1 << 16

// shrinkMaps replaces the maps of the index that have become almost empty: a Go map never shrinks.
func (t *Table) shrinkMaps() {
	t.optionals = shrunk(t.optionals, &t.peaks.optionals)
	t.transients = shrunk(t.transients, &t.peaks.transients)
	t.firstFails = shrunk(t.firstFails, &t.peaks.firstFails)
	t.traces = shrunk(t.traces, &t.peaks.traces)
	t.tallies = shrunk(t.tallies, &t.peaks.tallies)
	t.stops = shrunk(t.stops, &t.peaks.stops)
	t.Versions.of = shrunk(t.Versions.of, &t.peaks.versions)
	t.byID = shrunk(t.byID, &t.peaks.byID)
	t.byUnique = shrunk(t.byUnique, &t.peaks.byUnique)
}

// mapPeaks are the largest sizes of maps since they were made.
type mapPeaks struct{ optionals, transients, firstFails, traces, tallies, stops, versions, byID, byUnique int }

// shrunk copies a map into a new one if it once had 64 times as many entries. The entries are few enough to copy under
// the lock.
func shrunk[K comparable, V any](from map[K]V, peak *int) map[K]V {
	if *peak = max(*peak, len(from)); *peak < keptRoom || len(from) > *peak/64 {
		return from
	}
	*peak = len(from)
	to := make(map[K]V, len(from))
	maps.Copy(to, from)
	return to
}

// reusable empties a slice for reuse. It clears pointers, and frees the memory if it is far more than was needed.
func reusable[T any](s []T) []T {
	if cap(s) > keptRoom && len(s) < cap(s)/4 {
		return nil
	}
	clear(s)
	return s[:0]
}
