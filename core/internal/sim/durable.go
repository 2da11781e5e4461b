package sim

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"broker/core"
	"broker/core/engine"
)

// Checks of replies: everything that a reply shows of a job, a batch, the settings of a queue or a meta entry must be
// in the commit that the reply depends on. Before each commit, the simulation takes a snapshot of the state that the
// commit makes durable. A reply that depends on the open batch needs no check, because that batch will contain this
// state or a later one.

// snapshot is the content of one commit.
type snapshot struct {
	number  core.Commit
	jobs    map[uint64]core.JobInfo
	past    map[uint64]*core.Timeline
	batches map[uint64]core.BatchInfo
	queues  map[string]core.QueueInfo
	meta    []byte
	limits  string

	policies [2]string // by scope
}

// snapshot reads everything, without checks.
func (w *world) snapshot() *snapshot {
	s := &snapshot{
		jobs: map[uint64]core.JobInfo{}, past: map[uint64]*core.Timeline{}, batches: map[uint64]core.BatchInfo{},
		queues: map[string]core.QueueInfo{},
	}
	one := func(op core.Op) core.Reply { return w.engine.Do(w.observer, []core.Op{op}, nil)[0] }
	for cursor := uint64(0); ; {
		r := one(&core.ListJobs{Cursor: cursor, Limit: 1000})
		for _, i := range r.Jobs {
			s.jobs[i.Seq] = i
			if past := one(&core.Inspect{Ref: core.Ref{Seq: i.Seq}, Brief: true, Timeline: true}); past.Info != nil &&
				past.Info.Timeline != nil {
				s.past[i.Seq] = past.Info.Timeline
			}
		}
		if cursor = r.Cursor; cursor == 0 {
			break
		}
	}
	for _, number := range w.model.numbers {
		if r := one(&core.InspectBatch{Batch: number}); r.Batch != nil {
			s.batches[number] = *r.Batch
		}
	}
	for _, q := range one(&core.ListQueues{}).Queues {
		s.queues[q.Name] = q
	}
	limits := one(&core.ListLimits{})
	s.limits = limitsText(limits.Limits) + fmt.Sprint(limits.Sharings)
	for scope := range s.policies {
		s.policies[scope] = fmt.Sprint(one(&core.ListPolicies{Scope: core.PolicyScope(scope)}).Policies)
	}
	s.meta = one(&core.ReadMeta{Name: metaName}).Data
	return s
}

// openCommit returns the number of the open batch. It adds a change to that batch that no snapshot shows.
func (w *world) openCommit() core.Commit {
	op := &core.WriteMeta{Entries: []core.MetaEntry{{Name: "sim/mark", Value: []byte{1}}}}
	return w.engine.Do(w.observer, []core.Op{op}, nil)[0].Commit
}

// commit commits the open batch and records the durable state. Before that, it calls wait, once the batch is written.
func (w *world) commit(wait func()) {
	w.sealing = w.snapshot()
	w.sealing.number = w.openCommit()
	w.model.sharedSealed()
	w.engine.Flush()
	wait()
	if w.engine.Committed() == w.sealing.number {
		w.durable = w.sealing
		w.model.sharedDurable()
	}
	w.sealing = nil
}

// contentFor returns the content of the commit that a reply depends on; nil: it is not sealed yet.
func (w *world) contentFor(r *core.Reply) *snapshot {
	switch number := max(r.Commit, w.engine.Committed()); {
	case w.sealing != nil && w.sealing.number == number:
		return w.sealing
	case w.durable != nil && w.durable.number == number:
		return w.durable
	}
	return nil
}

// checkReply compares a reply with the commit that it depends on; op is its operation, if known. The first difference
// is kept in w.violation.
func (w *world) checkReply(op core.Op, r *core.Reply) {
	if w.mode == engine.Relaxed || w.violation != nil {
		return // relaxed replies depend on no commit
	}
	s := w.contentFor(r)
	if s == nil {
		return
	}
	if err := w.matches(op, r, s); err != nil {
		w.violation = fmt.Errorf("%T is answered by %d resting on commit %d of %d, which does not hold it: %w",
			op, r.Kind, r.Commit, w.engine.Committed(), err)
	}
}

// matches compares a reply with a snapshot.
func (w *world) matches(op core.Op, r *core.Reply, s *snapshot) error {
	switch r.Kind {
	case core.Inspected:
		if err := samePast(r.Seq, r.Info.Timeline, s.past[r.Seq]); err != nil && !unstored(r.Info) {
			return err
		}
		return w.sameJob(*r.Info, s)
	case core.Listed:
		for _, i := range r.Jobs {
			if err := w.sameJob(i, s); err != nil {
				return err
			}
		}
	case core.Submitted:
		if r.Existing {
			return w.holdsJob(r.Seq, s)
		}
	case core.Ended:
		return w.sameEnd(r, s)
	case core.Progressed:
		if i, stored := s.jobs[r.Seq]; stored && !unstored(&i) && i.Worker != "" && i.Progress.Num != r.Progress.Num {
			return fmt.Errorf("job %d was reported at %d, and is at %d", r.Seq, r.Progress.Num, i.Progress.Num)
		}
	case core.BatchReply:
		if r.Batch != nil && *r.Batch != s.batches[r.Seq] {
			return fmt.Errorf("batch %+v is %+v", *r.Batch, s.batches[r.Seq])
		}
	case core.MetaReply:
		if !bytes.Equal(r.Data, s.meta) {
			return fmt.Errorf("entry %q is %q", r.Data, s.meta)
		}
	case core.Answered:
		if op, all := op.(*core.ListLimits); all && op.Queue == "" &&
			limitsText(r.Limits)+fmt.Sprint(r.Sharings) != s.limits {
			return fmt.Errorf("limits %v %v are %s", r.Limits, r.Sharings, s.limits)
		}
		if op, is := op.(*core.ListPolicies); is && op.Name == "" && fmt.Sprint(r.Policies) != s.policies[op.Scope] {
			return fmt.Errorf("policies %v are %s", r.Policies, s.policies[op.Scope])
		}
	case core.Queues:
		for i := range r.Queues {
			if reported, have := &r.Queues[i], s.queues[r.Queues[i].Name]; reported.Paused != have.Paused ||
				reported.Max != have.Max {
				return fmt.Errorf("queue %s: paused %v, at most %+v is paused %v, at most %+v", reported.Name,
					reported.Paused, reported.Max, have.Paused, have.Max)
			}
		}
	case core.Failed:
		return w.sameRefusal(op, r, s)
	case core.Accepted, core.NothingReady, core.Counted, core.Purged, core.Assigned, core.Reading, core.TimedOut,
		core.Woken, core.DataSent,
		core.Warned, core.EventReply: // not about stored state, or in the open batch
	}
	return nil
}

// sameRefusal checks the reason of a refusal.
func (w *world) sameRefusal(op core.Op, r *core.Reply, s *snapshot) error {
	seq, ref := r.Seq, refOf(op)
	i, stored := s.jobs[ref.Seq]
	stored = stored && !unstored(&i)
	_, release := op.(*core.Release) // the job may have another lease
	switch {
	case errors.Is(r.Err, core.ErrNotFound) && stored && i.State != core.Done: // Done may be kept only for its children
		return fmt.Errorf("job %d is %v", ref.Seq, i.State)
	case errors.Is(r.Err, core.ErrFinished) && stored && i.State.Unfinished():
		return fmt.Errorf("job %d is %v and not finished", ref.Seq, i.State)
	case errors.Is(r.Err, core.ErrNotLeased) && !release && stored && i.State == core.Leased && i.Worker != "":
		return fmt.Errorf("job %d is leased to %s", ref.Seq, i.Worker)
	case errors.Is(r.Err, core.ErrDuplicate), errors.Is(r.Err, core.ErrNotUnique):
		return w.holdsJob(seq, s)
	}
	switch op := op.(type) {
	case *core.InspectBatch:
		if _, there := s.batches[op.Batch]; there {
			return fmt.Errorf("batch %d is there", op.Batch)
		}
	case *core.InspectQueue:
		if q := s.queues[op.Queue]; q.Paused || q.Max != (core.QueueMax{}) {
			return fmt.Errorf("queue %s is there", op.Queue)
		}
	}
	return nil
}

// refOf returns the job that an operation names by number.
func refOf(op core.Op) (ref core.Ref) {
	switch op := op.(type) {
	case *core.Inspect:
		ref = op.Ref
	case *core.Await:
		ref = op.Ref
	case *core.Complete:
		ref = op.Ref
	case *core.Fail:
		ref = op.Ref
	case *core.Report:
		ref = op.Ref
	case *core.SendData:
		ref = op.Ref
	case *core.Release:
		ref = op.Ref
	case *core.Cancel:
		ref = op.Ref
	case *core.Enqueue:
		ref = op.Ref
	case *core.Bury:
		ref = op.Ref
	case *core.Rerun:
		ref = op.Ref
	case *core.Resubmit:
		ref = op.Ref
	}
	return ref
}

// unstored reports whether a job is in memory only.
func unstored(i *core.JobInfo) bool { return i.Ephemeral || i.Unstored }

// holdsJob checks that a job in a reply is stored, if that was acknowledged.
func (w *world) holdsJob(seq uint64, s *snapshot) error {
	now := w.engine.Do(w.observer, []core.Op{&core.Inspect{Ref: core.Ref{Seq: seq}, Brief: true}}, nil)[0].Info
	if i, stored := s.jobs[seq]; now != nil && !unstored(now) && (!stored || unstored(&i)) {
		return fmt.Errorf("job %d is not stored", seq)
	}
	return nil
}

// sameEnd checks that a job with a reported outcome has ended.
func (w *world) sameEnd(r *core.Reply, s *snapshot) error {
	i, stored := s.jobs[r.Seq]
	if p := w.model.jobs[r.Seq]; !stored || unstored(&i) || p != nil && p.again {
		return nil
	}
	if i.State.Unfinished() {
		return fmt.Errorf("job %d was reported to have ended, and is %v", r.Seq, i.State)
	}
	if o := i.Outcome; o != nil && r.Outcome != nil &&
		(o.Success != r.Outcome.Success || !bytes.Equal(o.Result, r.Outcome.Result)) {
		return fmt.Errorf("job %d ended as %+v, and was reported to have ended as %+v", r.Seq, o, r.Outcome)
	}
	return nil
}

// sameJob compares a job in a reply with a snapshot.
func (w *world) sameJob(reported core.JobInfo, s *snapshot) error {
	if unstored(&reported) {
		return nil
	}
	have, stored := s.jobs[reported.Seq]
	if !stored || unstored(&have) {
		return fmt.Errorf("job %d was reported as %v, and is not stored", reported.Seq, reported.State)
	}
	if state := w.lasting(&have); state != w.lasting(&reported) || have.Fails != reported.Fails ||
		have.ExpiresAt != reported.ExpiresAt ||
		have.Broken != reported.Broken {
		return fmt.Errorf("job %d was reported as %v with %d failures until %d, and is %v with %d until %d",
			reported.Seq, reported.State, reported.Fails,
			reported.ExpiresAt, have.State, have.Fails, have.ExpiresAt)
	}
	if reported.State == core.Blocked && !slices.Equal(reported.Waiting, have.Waiting) {
		return fmt.Errorf("job %d was reported to wait for %v, and waits for %v", reported.Seq, reported.Waiting,
			have.Waiting)
	}
	if reported.Worker != "" && reported.Rerun != have.Rerun {
		return fmt.Errorf("job %d was reported to run once more: %v, and will: %v", reported.Seq, reported.Rerun,
			have.Rerun)
	}
	if reported.Worker != "" && reported.CancelRequestedAt != have.CancelRequestedAt {
		return fmt.Errorf("job %d was reported to stop since %d, and has to since %d", reported.Seq,
			reported.CancelRequestedAt, have.CancelRequestedAt)
	}
	if reported.Worker != "" && reported.Progress.Num != have.Progress.Num {
		return fmt.Errorf("job %d was reported at %d, and is at %d", reported.Seq, reported.Progress.Num,
			have.Progress.Num)
	}
	return nil
}

// lasting returns the state of a job after a crash: a lease held by a connection ends with the connection. A job that
// was due equals a ready job: if the clock was set back since, it will be due again.
func (w *world) lasting(i *core.JobInfo) core.State {
	switch {
	case i.State == core.Leased && i.Worker == "":
		return core.Ready
	case (i.State == core.Scheduled || i.State == core.Retrying) && i.ReadyAt <= w.clk.most:
		return core.Ready
	}
	return i.State
}

// leaseOver reports whether a lease has ended by what the clock shows now: it was set, or time passed before the
// restart.
func (w *world) leaseOver(was *core.JobInfo) bool {
	return was.State == core.Leased && was.LeaseUntil != 0 && was.LeaseUntil <= w.clk.Now()
}

// sameAsBefore checks, after a crash, that the state is that of the last durable commit, or of the commit being
// written. Only changes by time are allowed.
func (w *world) sameAsBefore(durable, sealed *snapshot) error {
	if w.mode == engine.Relaxed {
		return nil // commits happen at any time
	}
	after := w.snapshot()
	err := w.compare(durable, after)
	if err != nil && sealed != nil {
		if w.compare(sealed, after) == nil {
			return nil
		}
	}
	return err
}

// compare finds differences between a commit and the recovered state.
func (w *world) compare(before, after *snapshot) error {
	for _, seq := range slices.Sorted(maps.Keys(before.jobs)) {
		was := before.jobs[seq]
		is, there := after.jobs[seq]
		if err := samePast(seq, before.past[seq], after.past[seq]); err != nil && there {
			return err
		}
		if unstored(&was) || !there && (w.mayEnd(&was) || w.leftBefore(&was, before)) || w.leaseOver(&was) {
			continue
		}
		if !there {
			return fmt.Errorf("job %d was %v and is gone", seq, was.State)
		}
		if w.spentByCrash(&was, &is) || w.brokenByCrash(&was, &is, before, after) {
			continue
		}
		if state := w.lasting(&was); state != w.lasting(&is) && state != core.Blocked || is.Fails != was.Fails ||
			is.Tally != was.Tally {
			return fmt.Errorf("job %d was %v with %d failures and %+v, and is %v with %d and %+v", seq, was.State,
				was.Fails, was.Tally, is.State, is.Fails, is.Tally)
		}
		if err := w.sameDependencies(&was, &is, before, after); err != nil {
			return err
		}
		if was.Worker != "" && was.Rerun != is.Rerun {
			return fmt.Errorf("job %d was to run once more: %v, and is: %v", seq, was.Rerun, is.Rerun)
		}
		if was.Worker != "" && was.CancelRequestedAt != is.CancelRequestedAt {
			return fmt.Errorf("job %d was to stop since %d and is since %d", seq, was.CancelRequestedAt,
				is.CancelRequestedAt)
		}
		if was.Worker != "" && was.Progress.Num != is.Progress.Num {
			return fmt.Errorf("job %d was at %d and is at %d", seq, was.Progress.Num, is.Progress.Num)
		}
		if is.Queue != was.Queue || is.MovedFrom != was.MovedFrom || is.MovedAfter != was.MovedAfter ||
			is.Priority != was.Priority || was.Job != nil && is.Job != nil &&
			(!bytes.Equal(is.Job.Body, was.Job.Body) || !slices.Equal(is.Job.Tags, was.Job.Tags)) {
			return fmt.Errorf("job %d was %+v, %+v and is %+v, %+v", seq, was, was.Job, is, is.Job)
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(after.jobs)) {
		if j := after.jobs[seq].Job; j != nil && j.Schedule != "" {
			continue // it was due at the start
		}
		if was, there := before.jobs[seq]; !there || unstored(&was) {
			return fmt.Errorf("job %d came from nowhere, %v", seq, after.jobs[seq].State)
		}
	}
	for name, was := range before.queues {
		if is := after.queues[name]; !w.samePause(&was, &is) || is.Max != was.Max {
			return fmt.Errorf("queue %s was paused %v, at most %+v and is paused %v, at most %+v", name, was.Paused,
				was.Max, is.Paused, is.Max)
		}
	}
	if before.limits != after.limits {
		return fmt.Errorf("limits were %s and are %s", before.limits, after.limits)
	}
	if before.policies != after.policies {
		return fmt.Errorf("policies were %v and are %v", before.policies, after.policies)
	}
	if !bytes.Equal(before.meta, after.meta) {
		return fmt.Errorf("entry was %q and is %q", before.meta, after.meta)
	}
	return nil
}

// sameDependencies checks that a restart does not release a blocked job before its dependencies are done, and does not
// change its dependencies. Unstored dependencies are lost, and break the job. So does one whose child is dead: the step
// that does this may be stored, although nobody was told of it.
func (w *world) sameDependencies(was, is *core.JobInfo, before, after *snapshot) error {
	if was.State != core.Blocked {
		return nil
	}
	lost, p := was.Broken, w.model.jobs[was.Seq]
	goesOn := p != nil && p.onBroken == core.BrokenReleases
	for _, seq := range was.Waiting {
		p, childDead := before.jobs[seq], w.hasDeadChild(seq, after)
		lost = lost || childDead || unstored(&p) || !after.jobs[seq].State.Unfinished()
		switch {
		case unstored(&p) && !is.Broken && !goesOn:
			return fmt.Errorf("job %d depends on job %d, which is lost, and is not broken", is.Seq, seq)
		case unstored(&p), childDead && goesOn:
		case is.State != core.Blocked && p.State.Unfinished():
			return fmt.Errorf("job %d is %v, and job %d, on which it depends, was %v", is.Seq, is.State, seq, p.State)
		case is.State == core.Blocked && after.jobs[seq].State.Unfinished() && !slices.Contains(is.Waiting, seq):
			return fmt.Errorf("job %d does not wait for job %d any more, only for %v", is.Seq, seq, is.Waiting)
		}
	}
	for _, seq := range is.Waiting {
		if !slices.Contains(was.Waiting, seq) {
			return fmt.Errorf("job %d waits for job %d, and did not before", is.Seq, seq)
		}
	}
	if is.State == core.Blocked && (was.Broken && !is.Broken || is.Broken && !lost) {
		return fmt.Errorf("job %d was broken: %v, and is: %v", is.Seq, was.Broken, is.Broken)
	}
	return nil
}

// hasDeadChild reports whether a child of a job is dead, or a child of a child.
func (w *world) hasDeadChild(seq uint64, in *snapshot) bool {
	for _, child := range w.model.seqs {
		p := w.model.jobs[child]
		if p == nil || p.parent != seq {
			continue
		}
		if in.jobs[child].State == core.Dead || w.hasDeadChild(child, in) {
			return true
		}
	}
	return false
}

// mayEnd reports whether a job may be gone after a restart: because of its time to live, its limits, or its batch.
func (w *world) mayEnd(i *core.JobInfo) bool {
	p := w.model.jobs[i.Seq]
	return stopsByCrash(i) || i.ExpiresAt != 0 && w.clk.most >= i.ExpiresAt || p == nil || w.model.endsAlone(p) ||
		i.State == core.Blocked && i.Job != nil && i.Job.CallbackFor != 0
}
