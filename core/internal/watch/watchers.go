package watch

import (
	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// Watcher is a client's interest in a job, linked in the lists of the job and of the client.
type Watcher struct {
	Tag              uint64
	Client, Job      uint32
	nextJob, prevJob uint32
	nextOwn, prevOwn uint32
	Deadline         timer.ID
	Kind             core.Watch
	Over             bool // WatchRun: its deadline passed while the job was leased
	// in the first watcher of a job's list: number of watchers, and of watchers that keep the job alive
	count, owners uint32
}

// owns reports whether this watcher keeps an ephemeral job alive. Clients that only wait for the outcome do not.
func (w *Watcher) owns() bool { return w.Kind != core.WatchOutcome }

// Watchers are all watchers, by number, from 1. Not safe for concurrent use.
type Watchers struct {
	table *table.Table
	all   []Watcher
	free  uint32 // linked through nextJob
}

// New returns the watchers for the jobs of a table.
func New(t *table.Table) *Watchers { return &Watchers{table: t} }

// At is the watcher with a number.
func (s *Watchers) At(n uint32) *Watcher { return &s.all[n-1] }

func (s *Watchers) alloc() uint32 {
	if n := s.free; n != 0 {
		s.free = s.At(n).nextJob
		*s.At(n) = Watcher{}
		return n
	}
	s.all = append(s.all, Watcher{})
	return uint32(len(s.all))
}

// Add attaches w, whose client, kind and tag are set, to a job; own is the head of its client's list. Its wait ends at
// until; zero: never.
func (s *Watchers) Add(own *uint32, h uint32, w Watcher, until core.Instant) {
	n, e := s.alloc(), s.table.At(h)
	w.Job, w.nextJob, w.nextOwn = h, e.Watchers, *own
	w.count, w.owners = s.Count(e)
	w.count++
	if w.owns() {
		w.owners++
	}
	if e.Watchers != 0 {
		s.At(e.Watchers).prevJob = n
	}
	if *own != 0 {
		s.At(*own).prevOwn = n
	}
	e.Watchers, *own = n, n
	if until != 0 {
		w.Deadline = s.table.Timers.Add(until, timer.Owner{Kind: table.TimerWatch, Handle: n})
	}
	*s.At(n) = w
}

// Remove detaches a watcher; own is the head of its client's list. It returns how many watchers still keep the job
// alive.
func (s *Watchers) Remove(own *uint32, n uint32) (owners uint32) {
	w := s.At(n)
	e := s.table.At(w.Job)
	s.table.Timers.Remove(&w.Deadline)
	count, owners := s.Count(e)
	count--
	if w.owns() {
		owners--
	}
	if w.nextJob != 0 {
		s.At(w.nextJob).prevJob = w.prevJob
	}
	if w.prevJob != 0 {
		s.At(w.prevJob).nextJob = w.nextJob
	} else {
		e.Watchers = w.nextJob
	}
	if w.nextOwn != 0 {
		s.At(w.nextOwn).prevOwn = w.prevOwn
	}
	if w.prevOwn != 0 {
		s.At(w.prevOwn).nextOwn = w.nextOwn
	} else {
		*own = w.nextOwn
	}
	*w = Watcher{nextJob: s.free}
	s.free = n
	if e.Watchers != 0 {
		first := s.At(e.Watchers)
		first.count, first.owners = count, owners
	}
	return owners
}

// Of lists the watchers of a job, the newest first.
func (s *Watchers) Of(e *table.Entry) (numbers []uint32) {
	for n := e.Watchers; n != 0; n = s.At(n).nextJob {
		numbers = append(numbers, n)
	}
	return numbers
}

// Each calls fn for the watchers of a job; fn may detach its watcher.
func (s *Watchers) Each(e *table.Entry, fn func(n uint32, w *Watcher)) {
	for n := e.Watchers; n != 0; {
		w := s.At(n)
		next := w.nextJob
		fn(n, w)
		n = next
	}
}

// Count returns how many clients wait for a job, and how many of them keep it alive.
func (s *Watchers) Count(e *table.Entry) (count, owners uint32) {
	if e.Watchers == 0 {
		return 0, 0
	}
	first := s.At(e.Watchers)
	return first.count, first.owners
}

// Abandoned reports whether no client keeps an ephemeral job alive any more.
func (s *Watchers) Abandoned(e *table.Entry) bool {
	_, owners := s.Count(e)
	return owners == 0 && e.Has(table.Ephemeral)
}

// WantsOutcome reports whether a client waits for the whole result instead of the stream.
func (s *Watchers) WantsOutcome(e *table.Entry) (found bool) {
	s.Each(e, func(_ uint32, w *Watcher) { found = found || w.Kind != core.WatchStream })
	return found
}
