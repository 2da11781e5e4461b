package sim

import (
	"cmp"
	"fmt"

	"broker/core"
)

// Requests to stop: a job whose worker was asked to stop stays with the worker, and ends as cancelled unless the worker
// completes it. The model knows which workers were asked. A Rerun after the request cancels it, and so does any
// operation that moves the job elsewhere.

// askedToStop is the value of promise.stops after a worker was asked to stop; empty: it was not.
const askedToStop = "asked"

// asked reports whether the worker of a job was asked to stop.
func (p *promise) asked() bool {
	return len(p.stops) > 0 && p.stops[len(p.stops)-1].text == askedToStop && !p.again
}

// clearStop records that a client has moved the job elsewhere, which cancels the request.
func (w *world) clearStop(p *promise, r core.Reply) {
	if len(p.stops) > 0 {
		write(&p.stops, "", w.commitOf(r, w.stores(p)))
	}
}

// stop cancels a job; if a worker has it, it asks the worker to stop.
func (w *world) stop(p *promise) error {
	is := w.condition()
	op := &core.Cancel{Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, If: is, Running: core.RunningSignal}
	before := w.look(p.seq)
	var against error
	err := w.do(w.anyClient(), op, op.Tag, func(r core.Reply) {
		if r.Kind != core.Accepted {
			return
		}
		w.note("stop %d, asked %v, commit %d", p.seq, r.CancelRequested, r.Commit)
		against = cmp.Or(wronglyAccepted(p.seq, before, is), w.stopped(p, before, r))
	})
	return cmp.Or(err, against, w.checkNotified(p.seq))
}

// stopped checks and records that a cancel was accepted.
func (w *world) stopped(p *promise, before *core.JobInfo, r core.Reply) error {
	runs, is := before.State == core.Leased, w.look(p.seq)
	switch {
	case r.CancelRequested != runs:
		return fmt.Errorf("job %d was %v, and its worker was asked to stop: %v", p.seq, before.State, r.CancelRequested)
	case !runs:
		p.recordEnd(w.commitOf(r, w.stores(p)))
	case is == nil || is.State != core.Leased || is.CancelRequestedAt == 0 || is.Epoch != before.Epoch:
		return fmt.Errorf("job %d was to stop, was %+v and is %+v", p.seq, before, is)
	case before.CancelRequestedAt != 0 && before.CancelRequestedAt != is.CancelRequestedAt:
		return fmt.Errorf("job %d was to stop since %d and is since %d", p.seq, before.CancelRequestedAt,
			is.CancelRequestedAt)
	default:
		write(&p.stops, askedToStop, w.commitOf(r, w.stores(p)))
		p.mayEnd, p.askedFor = true, is.Epoch
	}
	return nil
}

// checkStopped checks the effect of a failure of a job whose worker was asked to stop.
func (w *world) checkStopped(p *promise) error {
	is := w.look(p.seq)
	if is == nil ||
		is.State == core.Done && (is.Outcome == nil || is.Outcome.Cause == core.Cancelled && !is.Outcome.Success) {
		return nil
	}
	return fmt.Errorf("job %d was to stop, its worker has failed it, and it is %+v", p.seq, is)
}

// auditStops compares the model with a job and with the list of jobs whose workers were asked to stop.
func (w *world) auditStops(listed map[uint64]core.JobInfo) error {
	found := map[uint64]bool{}
	for _, i := range w.ask(&core.Find{Filter: core.Filter{CancelRequested: true}, Limit: 1000, Brief: true}).Jobs {
		found[i.Seq] = true
	}
	for seq, i := range listed {
		if found[seq] != (i.CancelRequestedAt != 0) {
			return fmt.Errorf("job %d is to stop since %d, and is found: %v", seq, i.CancelRequestedAt, found[seq])
		}
		p := w.model.jobs[seq]
		switch {
		case p == nil || p.again:
		case i.CancelRequestedAt != 0 && !p.asked():
			return fmt.Errorf("job %d is to stop, and nobody has asked for it", seq)
		case p.asked() && i.CancelRequestedAt == 0 && i.State != core.Done:
			return fmt.Errorf("job %d was to stop, and is %v", seq, i.State)
		}
	}
	return nil
}

// stopsAfterCrash checks that a request to stop is possible after the crash, and updates the model to it.
func (p *promise) stopsAfterCrash(i *core.JobInfo, committed core.Commit) error {
	is := ""
	if i.CancelRequestedAt != 0 {
		is = askedToStop
	}
	if past := append([]written{{}}, p.stops...); i.State != core.Done && !p.again && !may(past, is, committed) {
		return fmt.Errorf("job %d came back as %v, to stop %q, was %+v, commit %d", p.seq, i.State, is, p.stops,
			committed)
	}
	if p.stops = nil; is != "" {
		p.stops, p.askedFor = []written{{is, 1}}, i.Epoch
	}
	return nil
}

// stopsByCrash reports whether a crash ends a job because the worker that was asked to stop loses its connection.
func stopsByCrash(was *core.JobInfo) bool {
	return was.CancelRequestedAt != 0 && was.State == core.Leased && was.Worker == ""
}
