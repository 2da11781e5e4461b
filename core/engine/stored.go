package engine

import (
	"errors"
	"fmt"

	"broker/core"
	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// The machine decides without the store and lists the data that its replies still need (machine.Work). This file reads
// that data outside the lock, so it may be newer than the decision. A reply never shows newer data, because that might
// not be durable yet.

// complete adds the data that only the store has to a reply.
func (e *Engine) complete(id core.ClientID, r *core.Reply, w *machine.Work) {
	var err error
	switch {
	case w.Needs == machine.FoundByRecords:
		err = e.scan(id, r, w.Find)
	case e.store == nil: // everything is in memory, and there are no documents
	default:
		err = e.completeStored(id, r, w)
	}
	if err != nil {
		*r = e.lost(r, err)
	}
}

// completeStored is complete for replies of an engine with a store.
func (e *Engine) completeStored(id core.ClientID, r *core.Reply, w *machine.Work) (err error) {
	switch w.Needs {
	case machine.LeasedJob:
		if err = e.readLeased(r, w.Queue); err == nil {
			e.refill(r.Seq)
		}
	case machine.LeasedJobLater:
		if !e.readLate(id, r, w.Queue) {
			*r = core.Reply{Kind: core.Failed, Tag: r.Tag, Seq: r.Seq, Err: core.ErrShutdown}
		}
	case machine.KeptOutcome:
		r.Outcome, err = e.store.Outcome(r.Seq)
	case machine.FailureOfDead:
		if r.Outcome.Failure, err = e.readFailure(r.Seq, w.Fails); r.Outcome.Failure != nil {
			r.Outcome.Result = r.Outcome.Failure.Data
		}
	case machine.InspectedJob:
		if _, err = e.readJob(r.Info, parts{body: true, outcome: true, failure: true}); err == nil {
			r.Job = r.Info.Job
			err = e.readTimeline(r.Info)
		}
	case machine.InspectedBrief:
		err = e.readTimeline(r.Info)
	case machine.ListedJobs:
		e.readListed(r, parts{body: true, outcome: true, failure: true})
	case machine.ListedHeads:
		e.readListed(r, parts{})
	case machine.FoundJobs:
		for k := range r.Jobs {
			if _, err := e.readJob(&r.Jobs[k], parts{failure: true}); err != nil && !errors.Is(err, store.ErrMissing) {
				return err
			}
		}
	case machine.StoredDocuments:
		err = e.readDocuments(r, w.Documents)
	case machine.FoundByRecords: // handled by complete
	}
	return err
}

// parts are the parts of a job that a reply shows besides its head.
type parts struct{ body, outcome, failure bool }

// readJob adds parts of a job to what the machine knows about it. It returns approximately how many bytes it read;
// ErrMissing if the job is gone. If only an outcome or a failure is gone, the job has changed after the decision.
func (e *Engine) readJob(i *core.JobInfo, want parts) (read int, err error) {
	if i.Job == nil {
		i.Job, err = e.readPayload(i.Seq, want.body)
		switch {
		case e.isDamage(err):
			e.showDamage(i, err)
		case err != nil:
			return 0, err
		}
		i.Job.InQueue(i.Queue)
		read = 256 + len(i.Job.Body) + len(i.Job.Attributes)
		if i.Failure == nil && i.State != core.Done {
			i.Failure = i.Job.FailureAfter(i.Fails)
		}
	}
	if e.store == nil {
		return read, nil
	}
	switch {
	case i.State == core.Done && i.Outcome == nil && i.Kept &&
		(want.outcome || want.failure && i.DoneFailed && i.Failure == nil):
		var o *core.Outcome
		if o, err = e.store.Outcome(i.Seq); err == nil {
			i.Failure, read = o.Failure, read+128+len(o.Result)
			if !want.outcome { // the cause and the failure are enough
				o.Result = nil
			}
			i.Outcome = o
		}
	case want.failure && i.State != core.Done && i.Failure == nil && i.Fails > i.Job.PriorFails:
		if i.Failure, err = e.readFailure(i.Seq, i.Fails); i.Failure != nil {
			read += 128 + len(i.Failure.Message) + len(i.Failure.Data)
		}
	}
	switch {
	case errors.Is(err, store.ErrMissing):
		err = nil
	case e.isDamage(err):
		e.reportDamage(i.Seq, err)
		i.Damage, err = err.Error(), nil
	}
	return read, err
}

// readPayload reads the submitted job. Without body, large bodies are left out.
func (e *Engine) readPayload(seq uint64, body bool) (*core.Job, error) {
	if body {
		return e.store.Job(seq)
	}
	return e.store.Head(seq)
}

// readFailure reads the last failure of a job that has failed this many times; nil if it has failed again since.
func (e *Engine) readFailure(seq uint64, fails uint32) (*core.Failure, error) {
	f, err := e.store.Failure(seq)
	if errors.Is(err, store.ErrMissing) { // it may have been submitted with the failure
		j, err := e.store.Head(seq)
		if err != nil {
			return nil, err
		}
		return j.FailureAfter(fails), nil
	}
	if err != nil || f.Count > fails {
		return nil, err
	}
	return f, nil
}

// readLeased adds the payload and the last failure to a lease.
func (e *Engine) readLeased(r *core.Reply, queue string) (err error) {
	if r.Job == nil {
		if r.Job, err = e.readPayload(r.Seq, true); err != nil {
			return err
		}
		r.Job.InQueue(queue)
		if r.Lease.Failure == nil {
			r.Lease.Failure = r.Job.FailureAfter(r.Lease.Fails)
		}
	}
	if r.Lease.Fails > r.Job.PriorFails && r.Lease.Failure == nil {
		r.Lease.Failure, err = e.readFailure(r.Seq, r.Lease.Fails)
	}
	return err
}

// readTimeline adds the stored entries to a job's timeline, if it has one.
func (e *Engine) readTimeline(i *core.JobInfo) error {
	t := i.Timeline
	if t == nil {
		return nil
	}
	stored, err := e.store.Timeline(i.Seq)
	if err != nil {
		return err
	}
	t.Entries = append(t.Entries, stored...) // some may be newer than the decision: Trim drops them
	t.Trim()
	return nil
}

// headsReadBytes is how much to read for one page of jobs without bodies.
const headsReadBytes = 1 << 20

// readListed adds parts of the jobs to a list. A job that cannot be read keeps a nil Job. A list of heads ends early
// after headsReadBytes.
func (e *Engine) readListed(r *core.Reply, want parts) {
	read := 0
	for k := range r.Jobs {
		if !want.body && read >= headsReadBytes && r.Jobs[k].Job == nil {
			r.Cursor, r.Jobs = r.Jobs[k-1].Cursor, r.Jobs[:k]
			return
		}
		n, _ := e.readJob(&r.Jobs[k], want) // the list goes on without the missing parts
		read += n
	}
}

// lost replaces a reply whose job could not be read: the job was removed after the decision, the engine has shut down,
// or the store is damaged.
func (e *Engine) lost(r *core.Reply, err error) core.Reply {
	if errors.Is(err, store.ErrClosed) {
		return core.Reply{Kind: core.Failed, Tag: r.Tag, Seq: r.Seq, Err: core.ErrShutdown}
	}
	if e.isDamage(err) {
		return e.damaged(r, err)
	}
	if !errors.Is(err, store.ErrMissing) {
		e.fail(fmt.Errorf("read job %d: %w", r.Seq, err))
		return core.Reply{Kind: core.Failed, Tag: r.Tag, Seq: r.Seq, Err: core.ErrStopped}
	}
	if r.Kind == core.Assigned {
		return core.Reply{Kind: core.TimedOut, Tag: r.Tag, Seq: r.Seq, N: r.N}
	}
	return core.Reply{Kind: core.Failed, Tag: r.Tag, Seq: r.Seq, Err: core.ErrNotFound}
}
