package table

import (
	"math"
	"time"

	"broker/core"
)

// NoteStop records that the worker of a job is asked to stop now.
func (t *Table) NoteStop(e *Entry) {
	t.SetStop(e, uint32(min(max(t.Now.Sub(e.LeasedAt).Milliseconds(), 0)+1, math.MaxUint32)))
}

// SetStop records that the worker was asked to stop so many milliseconds, less one, after the start of the lease.
func (t *Table) SetStop(e *Entry, after uint32) {
	e.Set(Stopping)
	t.stops[e.Seq] = after
}

// ForgetStop removes the request.
func (t *Table) ForgetStop(e *Entry) {
	if e.Has(Stopping) {
		e.Clear(Stopping)
		delete(t.stops, e.Seq)
	}
}

// StopAt returns when the worker of a job was asked to stop; zero: it was not.
func (t *Table) StopAt(e *Entry) core.Instant {
	if !e.Has(Stopping) {
		return 0
	}
	return e.LeasedAt.Add(time.Duration(t.stops[e.Seq]-1) * time.Millisecond)
}

// StopCount returns the number of jobs whose workers were asked to stop.
func (t *Table) StopCount() int { return len(t.stops) }

// StoppingJobs returns the jobs whose workers were asked to stop, in no order.
func (t *Table) StoppingJobs() (handles []uint32) {
	for seq := range t.stops {
		handles = append(handles, t.Handle(seq))
	}
	return handles
}
