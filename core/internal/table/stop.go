package table

import (
	"math"
	"time"

	"broker/core"
)

// NoteStop records that the worker of a job is asked to stop from now on.
func (t *Table) NoteStop(e *Entry) {
	t.SetStop(e, uint32(min(max(t.Now.Sub(e.LeasedAt).Milliseconds(), 0)+1, math.MaxUint32))) //nolint:gosec // bounded
}

func (t *Table) SetStop(e *Entry, after uint32) {
	e.Set(Stopping)
	t.stops[e.Seq] = after
}

// ForgetStop takes the request back.
func (t *Table) ForgetStop(e *Entry) {
	if e.Has(Stopping) {
		e.Clear(Stopping)
		delete(t.stops, e.Seq)
	}
}

// StopAt is since when the worker of a job is asked to stop; zero: it is not.
func (t *Table) StopAt(e *Entry) core.Instant {
	if !e.Has(Stopping) {
		return 0
	}
	return e.LeasedAt.Add(time.Duration(t.stops[e.Seq]-1) * time.Millisecond)
}

// StopCount is how many workers are asked to stop a job.
func (t *Table) StopCount() int { return len(t.stops) }

// StoppingJobs collects the jobs whose workers are asked to stop, in no order.
func (t *Table) StoppingJobs() (handles []uint32) {
	for seq := range t.stops {
		handles = append(handles, t.Handle(seq))
	}
	return handles
}
