package faktory

import (
	"bytes"
	"errors"

	"broker/core"
)

// maxPushTries limits the attempts of a PUSH while another job with the same jid keeps changing.
const maxPushTries = 3

// pushResult decides how a PUSH is answered. If a job with this jid exists:
//
//   - a dead job is replaced;
//   - a different job causes an error;
//   - a job that holds a unique lock causes an error, as in the paid edition of the reference server;
//   - an identical job that is running runs once more when this run ends, so that a job may push itself again;
//   - any other identical job means that the client repeats a PUSH because it lost the reply. Nothing is added.
func (s *session) pushResult(job *core.Job, r *core.Reply) (core.Commit, error) {
	commit, err := r.Commit, r.Err
	for try := 1; r.Kind == core.Failed && errors.Is(err, core.ErrDuplicate); try++ {
		commit, err = s.repeat(job, r.Seq, r.Lease.Epoch)
		if !errors.Is(err, errJobChanged) {
			return commit, err
		}
		if try == maxPushTries {
			return commit, core.ErrDuplicate
		}
		reply := s.ask(&core.Submit{Tag: s.NextTag(), Job: unsubmitted(job)})
		r, commit, err = &reply, reply.Commit, reply.Err
	}
	return commit, err
}

// errJobChanged means that the existing job has ended or has been leased since the push was refused.
var errJobChanged = errors.New("job has changed since the push")

// repeat handles a PUSH with the jid of the job seq. epoch is the lease that this job had when the push was refused;
// zero: none.
func (s *session) repeat(job *core.Job, seq uint64, epoch uint32) (core.Commit, error) {
	r := s.ask(&core.Inspect{Tag: s.NextTag(), Ref: core.Ref{Seq: seq}})
	if r.Kind != core.Inspected {
		return r.Commit, changedOr(r.Err)
	}
	existing, fetched := r.Info.Job, r.Info.Attempts > 0
	switch {
	case r.Info.State == core.Dead:
		return s.replace(job, seq)
	case !sameJob(job, existing) && !(fetched && sameWork(job, existing)):
		return r.Commit, core.ErrDuplicate
	case s.holdsUniqueLock(existing, r.Info):
		return r.Commit, core.ErrNotUnique
	case epoch == 0:
		return r.Commit, nil
	case job.ReadyAt != 0: // the next run cannot be scheduled
		return r.Commit, core.ErrDuplicate
	}
	r = s.ask(&core.Rerun{
		Tag: s.NextTag(), Ref: core.Ref{Seq: seq}, If: core.Condition{Epoch: epoch, HasEpoch: true},
	})
	if r.Kind == core.Failed {
		return r.Commit, changedOr(r.Err)
	}
	return r.Commit, nil
}

// replace submits a job in place of a dead one. If the new job is refused, the dead job stays.
func (s *session) replace(job *core.Job, dead uint64) (core.Commit, error) {
	r := s.ask(&core.Atomic{Tag: s.NextTag(), Ops: []core.Op{
		&core.Cancel{Ref: core.Ref{Seq: dead}, If: core.InState(core.Dead)}, &core.Submit{Job: unsubmitted(job)},
	}})
	if r.Kind == core.Failed {
		return r.Commit, changedOr(r.Err)
	}
	return r.Commit, nil
}

// unsubmitted copies a job, because the broker owns a submitted job.
func unsubmitted(job *core.Job) *core.Job {
	again := *job
	again.Seq = 0
	return &again
}

// changedOr maps errors that mean a changed job to errJobChanged, and returns other errors unchanged.
func changedOr(err error) error {
	if errors.Is(err, core.ErrNotFound) || errors.Is(err, core.ErrNotLeased) || errors.Is(err, core.ErrConflict) {
		return errJobChanged
	}
	return err
}

// holdsUniqueLock reports whether a job holds its unique lock.
func (s *session) holdsUniqueLock(job *core.Job, info *core.JobInfo) bool {
	return job.Unique == core.UniqueRefuse && job.UniqueUntil > s.front.broker.Now() &&
		!(job.UniqueStart && info.Attempts > 0)
}

// sameJob reports whether two pushed jobs are identical: a client that lost the reply sends the same job again.
func sameJob(a, b *core.Job) bool {
	return sameTarget(a, b) && sameJSON(a.Attributes, b.Attributes)
}

// sameWork reports whether a push describes the same work as a job. A worker may push a job that it has fetched. Such a
// job has additional members, which sameWork ignores. A push for a later time is not the same work.
func sameWork(push, job *core.Job) bool {
	if push.ReadyAt != 0 || !sameTarget(push, job) {
		return false
	}
	a, b := readAttributes(push), readAttributes(job)
	return sameJSON(a.retry, b.retry) && sameJSON(a.custom, b.custom) && sameJSON(a.reserveFor, b.reserveFor) &&
		sameJSON(a.backtrace, b.backtrace) && sameJSON(a.rest, b.rest)
}

// sameTarget compares the fields of core.Job.
func sameTarget(a, b *core.Job) bool {
	return a.Origin == b.Origin && a.Queue == b.Queue && a.Type == b.Type && sameJSON(a.Body, b.Body)
}

// sameJSON compares two valid JSON texts and ignores white space.
func sameJSON(a, b []byte) bool {
	return bytes.Equal(a, b) || bytes.Equal(appendCompact(nil, a), appendCompact(nil, b))
}
