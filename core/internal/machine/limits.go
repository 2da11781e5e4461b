package machine

import (
	"maps"
)

// usualUnstored limits the bytes that are admitted and not on disk yet, unless the options do: a slow disk must not fill the memory
// with the jobs of clients that do not wait for replies.
const usualUnstored = 1 << 30

func (m *Machine) maxUnstored() int { return m.opts.MaxUnstored }

// maxOpen limits the open batch, far below what a commit may hold: beyond it every change is refused until the batch is sealed.
func (m *Machine) maxOpen() int { return 3 * m.maxUnstored() }

// changeBytes is about what a changed job takes in a batch beside its payload, failure and outcome.
const changeBytes = 256

// addOpen counts bytes of the open batch.
func (m *Machine) addOpen(n int) {
	if m.opts.Persist {
		m.openBytes += n
	}
}

// maxCollected limits the chunks kept for the whole result of one job, maxCollectedTotal those of all jobs. Beyond them the
// result of a job is only what the completion carries.
const (
	maxCollected      = 64 << 20
	maxCollectedTotal = 256 << 20
)

// collect keeps a chunk of a job's result.
func (m *Machine) collect(n *transient, data []byte) {
	if n.tooMuch = n.tooMuch || len(n.data)+len(data) > maxCollected || m.collected+len(data) > maxCollectedTotal; n.tooMuch {
		m.dropCollected(n)
		return
	}
	n.data = append(n.data, data...)
	m.collected += len(data)
}

func (m *Machine) dropCollected(n *transient) {
	m.collected -= len(n.data)
	n.data = nil
}

// Slices and maps with room for more than keptRoom entries are given back when they are hardly used any more.
const keptRoom = 1 << 16

// shrinkMaps replaces the maps of the index that have become almost empty: a Go map never shrinks.
func (m *Machine) shrinkMaps() {
	m.optionals = shrunk(m.optionals, &m.peaks.optionals)
	m.transients = shrunk(m.transients, &m.peaks.transients)
	m.firstFails = shrunk(m.firstFails, &m.peaks.firstFails)
	m.traces = shrunk(m.traces, &m.peaks.traces)
	m.tallies = shrunk(m.tallies, &m.peaks.tallies)
	m.stops = shrunk(m.stops, &m.peaks.stops)
	m.byID = shrunk(m.byID, &m.peaks.byID)
	m.byUnique = shrunk(m.byUnique, &m.peaks.byUnique)
}

// mapPeaks are the largest sizes of maps since they were made.
type mapPeaks struct{ optionals, transients, firstFails, traces, tallies, stops, byID, byUnique int }

// shrunk returns a new map with the entries of a map that had 64 times as many: few enough to copy them under the lock.
func shrunk[K comparable, V any](from map[K]V, peak *int) map[K]V {
	if *peak = max(*peak, len(from)); *peak < keptRoom || len(from) > *peak/64 {
		return from
	}
	*peak = len(from)
	to := make(map[K]V, len(from))
	maps.Copy(to, from)
	return to
}

// reusable empties a slice; it keeps no pointers, and no memory that is far more than was needed.
func reusable[T any](s []T) []T {
	if cap(s) > keptRoom && len(s) < cap(s)/4 {
		return nil
	}
	clear(s)
	return s[:0]
}

// release drops what a batch that is on disk refers to.
func (s *Sealed) release() {
	b := &s.Batch
	b.Changes, b.Meta, b.Documents = reusable(b.Changes), reusable(b.Meta), reusable(b.Documents)
	s.handles = reusable(s.handles)
}
