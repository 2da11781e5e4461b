package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/schema"
	"broker/frontends/shared/tracecontext"
)

// Submission is a job to be submitted.
type Submission struct {
	Queue string `json:"queue,omitempty" doc:"required" example:"mail"`
	Type  string `json:"type,omitempty" doc:"type of the job; default: the queue's name"`
	ID    string `json:"id,omitempty" doc:"an id chosen by the client; default: the broker makes one"`

	Args       json.RawMessage `json:"args,omitempty" doc:"the body as an array of arguments"`
	Body       *string         `json:"body,omitempty" doc:"the body as text"`
	BodyBase64 *string         `json:"body_base64,omitempty" doc:"the body as bytes"`

	Tags []string `json:"tags,omitempty" doc:"to find it by"`

	Priority     int64     `json:"priority,omitempty" minimum:"-4294967296" maximum:"4294967295" doc:"higher first; 0 is normal"`
	RunAt        time.Time `json:"run_at,omitzero" doc:"not before; default: at once"`
	DelayS       float64   `json:"delay_s,omitempty" doc:"in place of run_at: seconds from now"`
	ExpiresAt    time.Time `json:"expires_at,omitzero" doc:"time at which it is removed in any state; default: never"`
	ExpiresInS   *float64  `json:"expires_in_s,omitempty" doc:"in place of expires_at: seconds from now; 0: never, also if a policy says otherwise"`
	StartBefore  time.Time `json:"start_before,omitzero" doc:"removed if no worker has leased it by then; default: never"`
	Deadline     time.Time `json:"deadline,omitzero" doc:"time by which it should be done; the broker shows whether it is late, and does nothing else"`
	DeadlineInS  float64   `json:"deadline_in_s,omitempty" doc:"in place of deadline: seconds from now"`
	LeaseForS    *float64  `json:"lease_for_s,omitempty" doc:"a worker's time to finish; default: of the worker's protocol; 0: the same, also if a policy says otherwise"`
	MaxFails     *uint32   `json:"max_fails,omitempty" maximum:"4294967295" doc:"failures after which there is no further attempt; default 25, for an ephemeral job 1"`
	MaxAttempts  *uint32   `json:"max_attempts,omitempty" maximum:"4294967295" doc:"leases after which it has failed; default: no limit; 0: no limit, also if a policy says otherwise"`
	Backoff      string    `json:"backoff,omitempty" enum:"faktory,none,exponential" doc:"wait between a failure and the next attempt; faktory, the default: it grows with the fourth power of the failures, as in Faktory; exponential is an old name for it"`
	OnExhausted  string    `json:"on_exhausted,omitempty" enum:"dead,drop,bury,finish" doc:"after the last failure: keep it in the dead set (default), or end it as failed; bury and finish are old names for these"`
	Cost         uint32    `json:"cost,omitempty" maximum:"1000000" doc:"how much a lease counts in limits of concurrent leases and in rates; default 1"`
	DeadForS     float64   `json:"dead_for_s,omitempty" doc:"time in the dead set; default 180 days"`
	RetainForS   *float64  `json:"retain_for_s,omitempty" doc:"time that the outcome is kept after the end; default: not kept; 0: not kept, also if a policy says otherwise"`
	UniqueKey    string    `json:"unique_key,omitempty" doc:"one live job per queue and key"`
	OnDuplicate  string    `json:"on_duplicate,omitempty" enum:"refuse,coalesce,replace" doc:"a second job with the key is refused (default), returns the first job, or replaces the body, tags, priority and run_at of the first job unless that is running"`
	DebounceMaxS float64   `json:"debounce_max_s,omitempty" doc:"with replace: due at most this long after the first submission, regardless of delay_s or run_at"`
	UniqueForS   float64   `json:"unique_for_s,omitempty" doc:"the key is free after this time, even if the job is not finished"`
	UniqueUntil  string    `json:"unique_until,omitempty" enum:"end,start,window" doc:"the key is free when the job ends (default), when a worker leases it, or only after unique_for_s, even if the job has ended"`
	Ephemeral    bool      `json:"ephemeral,omitempty" doc:"a foreground job: not stored, and removed when its waiting client disconnects; needs wait"`
	Parent       string    `json:"parent,omitempty" doc:"name of the parent job: this job waits until the parent has finished"`
	After        []string  `json:"after,omitempty" doc:"names of jobs: blocked until all of them are done"`
	OnBroken     string    `json:"on_broken,omitempty" enum:"wait,release,fail,drop" doc:"if a job that it waits for dies or is cancelled: keep waiting (default), run anyway, go to the dead set, or be cancelled"`
	Batch        string    `json:"batch,omitempty" doc:"its batch"`
	Traceparent  string    `json:"traceparent,omitempty" doc:"W3C trace context that the worker continues; default: the context of the request; an invalid one is ignored"`
	Tracestate   string    `json:"tracestate,omitempty" doc:"goes with traceparent"`
}

// hasTimes reports whether the submission names times, which a schedule's job can not have.
func (sub *Submission) hasTimes() bool {
	return slices.ContainsFunc([]time.Time{sub.RunAt, sub.ExpiresAt, sub.StartBefore, sub.Deadline},
		func(at time.Time) bool { return !at.IsZero() })
}

// Defaults of a submission.
const (
	defaultMaxFails = 25
	longestSpan     = 100 * 365 * 24 * time.Hour
)

// SubmitOptions are the parameters of a submission.
type SubmitOptions struct {
	Wait time.Duration // for the outcomes; zero: no waiting
	Key  string        // idempotency key; empty: none
	Many bool          // the jobs came as a list; errors use the index

	// Trace is the trace context of the request, for jobs without their own. It is not compared for an idempotency key,
	// because clients make a new one for each attempt.
	Trace string
}

// Submit admits jobs in one commit, all or none. With a wait it returns once all outcomes are known or the time is
// over. It returns the state of the jobs at that time.
func (s *Service) Submit(ctx context.Context, caller Caller, subs []Submission, o SubmitOptions) ([]Job, error) {
	c := s.open(caller)
	defer c.Close()
	now := s.Now()
	ops := make([]core.Op, len(subs))
	for i := range subs {
		op, err := s.submission(ctx, c, &subs[i], now, &o)
		if err != nil && o.Many {
			err = Within(fmt.Sprintf("jobs[%d]", i), err)
		}
		if err != nil {
			return nil, err
		}
		op.Tag = uint64(i)
		ops[i] = op
	}
	switch {
	case o.Key == "":
		return s.submit(ctx, c, ops, o.Wait, nil)
	case s.follows:
		return nil, &Error{Code: CodeUnsupported, Field: keyField, Detail: "idempotency keys are known to the leader only"}
	}
	key, repeated, err := s.useKey(caller, o.Key, subs)
	switch {
	case err != nil:
		return nil, err
	case repeated:
		return s.repeat(ctx, c, key, subs, ops, o.Wait)
	}
	return s.submit(ctx, c, ops, o.Wait, key)
}

// submission makes the operation for one job.
func (s *Service) submission(
	ctx context.Context, c *session, sub *Submission, now core.Instant, o *SubmitOptions,
) (*core.Submit, error) {
	if err := c.caller.may(access.Produce, sub.Queue); err != nil {
		return nil, err
	}
	job, err := s.jobOf(ctx, c, sub, now, o.Wait > 0)
	if err != nil {
		return nil, err
	}
	job.Trace = cmp.Or(tracecontext.Join(sub.Traceparent, sub.Tracestate), o.Trace)
	op := &core.Submit{Job: job, Info: true}
	if op.DebounceMs, err = debounce(sub); err != nil {
		return nil, err
	}
	if sub.UniqueUntil == uniqueWindow {
		op.Window = job.UniqueUntil
	}
	switch {
	case job.Ephemeral:
		op.Watch, op.Deadline = core.WatchRun, now.Add(o.Wait)
	case o.Wait > 0:
		op.Watch, op.Deadline = core.WatchOutcome, now.Add(o.Wait)
	}
	return op, nil
}

// jobOf makes the job of a submission.
func (s *Service) jobOf(
	ctx context.Context, c *session, sub *Submission, now core.Instant, waits bool,
) (*core.Job, error) {
	switch {
	case sub.Queue == "":
		return nil, invalid("queue", "queue is required")
	case len(sub.Queue) > core.MaxQueueName:
		return nil, invalid("queue", "queue must not be longer than %d bytes", core.MaxQueueName)
	case len(sub.Type) > core.MaxQueueName:
		return nil, invalid("type", "type must not be longer than %d bytes", core.MaxQueueName)
	case len(sub.ID) > core.MaxIDBytes:
		return nil, invalid("id", "id must not be longer than %d bytes", core.MaxIDBytes)
	case len(sub.UniqueKey) > core.MaxIDBytes:
		return nil, invalid("unique_key", "unique_key must not be longer than %d bytes", core.MaxIDBytes)
	case sub.Ephemeral && !waits:
		return nil, invalid("ephemeral", "an ephemeral job needs the parameter wait")
	}
	job := &core.Job{
		ID: sub.ID, Queue: sub.Queue, Type: sub.Type, Origin: core.HTTP, Priority: sub.Priority,
		MaxAttempts: deref(sub.MaxAttempts),
		Ephemeral:   sub.Ephemeral, Tags: sub.Tags,
		LeaseEnd: core.LeaseEndFail,
		Cost:     sub.Cost,
	}
	if err := checkTags(sub.Tags); err != nil {
		return nil, err
	}
	if err := s.setBody(job, sub); err != nil {
		return nil, err
	}
	if err := setTimes(job, sub, now); err != nil {
		return nil, err
	}
	if err := setRetries(job, sub); err != nil {
		return nil, err
	}
	if err := setUnique(job, sub, now); err != nil {
		return nil, err
	}
	return job, s.setLinks(ctx, c, job, sub)
}

// CheckSubmission returns the error with which Submit would refuse a job.
func (s *Service) CheckSubmission(ctx context.Context, caller Caller, sub *Submission) error {
	c := s.open(caller)
	defer c.Close()
	_, err := s.jobOf(ctx, c, sub, s.Now(), false)
	return err
}

// checkTags validates the tags of a job.
func checkTags(tags []string) error {
	if len(tags) > core.MaxTags {
		return invalid("tags", "tags must not be more than %d", core.MaxTags)
	}
	for i, tag := range tags {
		if tag == "" || len(tag) > core.MaxTagBytes {
			return invalid(fmt.Sprintf("tags[%d]", i), "a tag has 1 to %d bytes", core.MaxTagBytes)
		}
	}
	return nil
}

// setBody sets the body from whichever of its three forms is present.
func (s *Service) setBody(job *core.Job, sub *Submission) error {
	forms := 0
	if sub.Args != nil {
		forms++
		if sub.Args[0] != '[' {
			return invalid("args", "args must be an array; for anything else use body")
		}
		job.Body, job.Format = sub.Args, core.Args
	}
	if sub.Body != nil {
		forms++
		job.Body = []byte(*sub.Body)
	}
	if sub.BodyBase64 != nil {
		forms++
		var err error
		if job.Body, err = base64.StdEncoding.DecodeString(*sub.BodyBase64); err != nil {
			return invalid("body_base64", "body_base64 is not base64: %v", err)
		}
	}
	switch {
	case forms > 1:
		return invalid("body", "args, body and body_base64 exclude each other")
	case len(job.Body) > s.o.MaxBodyBytes:
		return &Error{
			Code: CodeTooLarge, Field: "body",
			Detail: fmt.Sprintf("the body must not be larger than %d bytes", s.o.MaxBodyBytes),
		}
	}
	return nil
}

func setTimes(job *core.Job, sub *Submission, now core.Instant) (err error) {
	if !sub.RunAt.IsZero() && sub.DelayS != 0 {
		return invalid("delay_s", "run_at and delay_s exclude each other")
	}
	if !sub.ExpiresAt.IsZero() && deref(sub.ExpiresInS) != 0 {
		return invalid("expires_in_s", "expires_at and expires_in_s exclude each other")
	}
	if !sub.Deadline.IsZero() && sub.DeadlineInS != 0 {
		return invalid("deadline_in_s", "deadline and deadline_in_s exclude each other")
	}
	job.ReadyAt, job.ExpiresAt = core.InstantOf(sub.RunAt), core.InstantOf(sub.ExpiresAt)
	job.StartBefore = core.InstantOf(sub.StartBefore)
	rare := core.RareFields{Deadline: core.InstantOf(sub.Deadline)}
	for _, t := range []struct {
		name string
		s    float64
		set  func(time.Duration)
	}{
		{"delay_s", sub.DelayS, func(d time.Duration) { job.ReadyAt = now.Add(d) }},
		{"expires_in_s", deref(sub.ExpiresInS), func(d time.Duration) { job.ExpiresAt = now.Add(d) }},
		{"deadline_in_s", sub.DeadlineInS, func(d time.Duration) { rare.Deadline = now.Add(d) }},
		{"lease_for_s", deref(sub.LeaseForS), func(d time.Duration) { job.LeaseFor = d }},
		{"retain_for_s", deref(sub.RetainForS), func(d time.Duration) { job.RetainFor = d }},
		{"dead_for_s", sub.DeadForS, func(d time.Duration) { job.DeadFor = d }},
	} {
		if t.s == 0 {
			continue
		}
		d, err := span(t.name, t.s)
		if err != nil {
			return err
		}
		t.set(d)
	}
	job.SetRares(rare)
	if job.ReadyAt <= now {
		job.ReadyAt = 0
	}
	if job.ExpiresAt != 0 && job.ExpiresAt <= now {
		return invalid("expires_at", "expires_at is in the past")
	}
	return nil
}

// span reads a number of seconds.
func span(field string, seconds float64) (time.Duration, error) {
	if math.IsNaN(seconds) || seconds < 0 || seconds > longestSpan.Seconds() {
		return 0,
			invalid(field, "%s must be a number of seconds between 0 and %.0f", field, longestSpan.Seconds())
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

func setRetries(job *core.Job, sub *Submission) error {
	job.MaxFails, job.Backoff, job.Exhausted = defaultMaxFails, core.BackoffFaktory, core.ExhaustedBury
	if job.Ephemeral {
		job.MaxFails, job.Exhausted = 1, core.ExhaustedFinish
	}
	if sub.MaxFails != nil {
		job.MaxFails = *sub.MaxFails
	}
	for _, m := range []struct {
		said bool
		is   core.PolicyFields
	}{
		{sub.MaxAttempts != nil, core.PolicyMaxAttempts},
		{sub.MaxFails != nil, core.PolicyMaxFails},
		{sub.Backoff != "", core.PolicyBackoff},
		{sub.OnExhausted != "", core.PolicyExhausted},
		{sub.LeaseForS != nil, core.PolicyLeaseFor},
		{sub.ExpiresInS != nil, core.PolicyExpiresIn},
		{sub.RetainForS != nil, core.PolicyRetainFor},
	} {
		if m.said {
			job.Own |= m.is
		}
	}
	if job.DeadFor == 0 {
		job.DeadFor = core.DeadFor
	}
	var known bool
	if sub.Backoff != "" {
		if job.Backoff, known = schema.JobBackoffs[sub.Backoff]; !known {
			return invalid("backoff", "backoff must be faktory or none")
		}
	}
	if sub.OnExhausted != "" {
		if job.Exhausted, known = schema.EndOf(sub.OnExhausted); !known {
			return invalid("on_exhausted", "on_exhausted must be dead or drop")
		}
	}
	return nil
}

// submit applies the operations and waits as requested.
func (s *Service) submit(
	ctx context.Context, c *session, ops []core.Op, wait time.Duration, key *usedKey,
) ([]Job, error) {
	var stored *core.WriteDocuments
	if key != nil {
		stored = s.attach(key, ops)
	}
	admitted, err := s.admit(ctx, c, ops, stored)
	if IsCode(err, CodeNotUnique) && unwatchWindows(ops) {
		admitted, err = s.admit(ctx, c, ops, stored)
	}
	if key != nil {
		s.settleKey(key, stored, admitted, err)
	}
	if err != nil {
		return nil, err
	}
	takeNames(ops, admitted)
	ended := make([]*core.Outcome, len(ops))
	if wait > 0 {
		if err := c.await(ctx, ended, c.watched(ops, admitted, s.Now().Add(wait)), wait); err != nil {
			return nil, err
		}
		c.withdraw(ops, ended)
		for i := range admitted {
			admitted[i].Info = nil // time has passed
		}
	}
	return s.viewSubmitted(c, ops, admitted, ended), nil
}

// takeNames gives new jobs the number and the time that make their ids. A broker in this process has written them into
// the submitted job; the broker of another node has a copy of it.
func takeNames(ops []core.Op, admitted []core.Reply) {
	for i := range ops {
		op, info := ops[i].(*core.Submit), admitted[i].Info
		if info == nil || admitted[i].Existing || op.Job.Seq == info.Seq {
			continue
		}
		named := *op.Job // its broker may still use it
		named.Seq, named.CreatedAt = info.Seq, info.CreatedAt
		op.Job = &named
	}
}

// withdraw ends the wait for ephemeral jobs without an outcome. That removes them, unless another client waits for them
// too. It runs before the answer is made, so that the answer does not show a removed job.
func (c *session) withdraw(ops []core.Op, ended []*core.Outcome) {
	for i := range ops {
		if ended[i] == nil && ops[i].(*core.Submit).Job.Ephemeral {
			c.CancelWaits()
			return
		}
	}
}

// await fills ended with the outcomes of jobs that arrive within the wait. It measures monotonic time, because the
// broker's clock may be set.
func (c *session) await(ctx context.Context, ended []*core.Outcome, watched int, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	waiting, cancel := context.WithTimeoutCause(ctx, wait, errWaitOver)
	defer cancel()
	if err := c.outcomes(waiting, ended, watched); err != nil && !errors.Is(err, errWaitOver) {
		return err
	}
	return nil
}

// admit applies submissions and stores documents with them, all or none, and waits for their commit. stored may be nil.
func (s *Service) admit(
	ctx context.Context, c *session, ops []core.Op, stored *core.WriteDocuments,
) ([]core.Reply, error) {
	if len(ops) == 1 && stored == nil {
		r, err := c.call(ctx, ops[0])
		return []core.Reply{r}, err
	}
	all := ops
	if stored != nil {
		all = append(slices.Clip(ops), stored)
	}
	r, err := c.call(ctx, &core.Atomic{Ops: all})
	if e := (*Error)(nil); len(ops) > 1 && errors.As(err, &e) && !e.mayApply() && r.Answer != nil {
		e.Field = fmt.Sprintf("jobs[%d]", r.Index)
	}
	if err != nil {
		return nil, err
	}
	return r.Replies[:len(ops)], nil
}

// outcomes fills ended, by tag, with the outcomes of the jobs that the client watches.
func (c *session) outcomes(ctx context.Context, ended []*core.Outcome, watched int) error {
	for range watched {
		r, err := c.NextOf(ctx, func(r *core.Reply) bool { return r.Kind == core.Ended || r.Kind == core.TimedOut })
		if lost, _ := c.Lost(); lost {
			return errOutcomeUnknown(c.clustered)
		}
		if err != nil {
			return err
		}
		if r.Kind == core.TimedOut {
			continue
		}
		if err := c.committed(ctx, r.Commit); err != nil {
			return err
		}
		ended[r.Tag] = r.Outcome
	}
	return nil
}

// withdrawn is the outcome of an ephemeral job without a waiting client.
var withdrawn = &core.Outcome{
	Cause: core.Cancelled, Failure: &core.Failure{Message: "withdrawn: no outcome in the time that the client waited"},
}

// viewSubmitted shows the current state of the jobs if it is durable, else their state at admission. An ephemeral job
// that no longer exists was withdrawn.
func (s *Service) viewSubmitted(c *session, ops []core.Op, admitted []core.Reply, ended []*core.Outcome) []Job {
	now := c.look(ops, admitted, ended)
	views := make([]Job, len(ops))
	for i := range ops {
		job, info := ops[i].(*core.Submit).Job, now[i]
		if over := admitted[i].Job; info == nil && over != nil { // its key is still in use
			info = new(core.InfoOf(over))
			info.State, info.Origin = core.Done, core.HTTP
		} else if info == nil {
			info = new(core.InfoOf(job))
			info.Seq = admitted[i].Seq
		}
		if !admitted[i].Existing {
			info.Job = job
		}
		if o := ended[i]; o != nil {
			info.Outcome = o
			if info.State.Unfinished() {
				info.State = core.Done
			}
		}
		views[i] = s.viewOf(info)
	}
	return views
}

// look returns the states of the jobs that are durable. It asks the core for those that the replies to the submissions
// do not have. It gives the ephemeral jobs that were withdrawn an outcome.
func (c *session) look(ops []core.Op, admitted []core.Reply, ended []*core.Outcome) []*core.JobInfo {
	now := make([]*core.JobInfo, len(ops))
	var looks []core.Op
	for i := range ops {
		if now[i] = admitted[i].Info; now[i] == nil {
			// another job has an id of its own
			looks = append(looks, &core.Inspect{
				Tag: uint64(i), Ref: core.Ref{Seq: admitted[i].Seq}, Brief: !admitted[i].Existing,
			})
		}
	}
	replies := c.AskAll(looks...)
	for i := range replies {
		switch r := &replies[i]; {
		case r.Kind == core.Inspected && c.HasCommitted(r.Commit):
			if now[r.Tag] = r.Info; r.Info.Job == nil {
				r.Info.Job = r.Job
			}
		case r.Kind == core.Failed && ended[r.Tag] == nil && ops[r.Tag].(*core.Submit).Job.Ephemeral:
			ended[r.Tag] = withdrawn
		}
	}
	return now
}

// deref is the value of a member that may be absent.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
