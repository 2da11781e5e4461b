package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/client"
)

// LeaseOptions are the parameters of a lease.
type LeaseOptions struct {
	Queues   []string      // in the order in which they are emptied
	Wait     time.Duration // zero: not at all
	Worker   string        // the worker's own name; empty: that of its principal or host
	Version  string        // of the worker's program; empty: unknown
	LeaseFor time.Duration // zero: the job's value, else the default lease
	Max      int           // jobs; zero: one
	Min      int           // wait until this many are ready, or Wait is over
}

// Lease is a leased job.
type Lease struct {
	Token string `json:"lease" doc:"identifies the lease in the worker's further requests"`
	Job   Job    `json:"job"`
}

// maxWorkerName limits the name of a worker, in bytes. maxLeaseBytes limits the bodies of jobs that are leased
// together. maxMinQueues limits the queues of a lease that waits for several jobs: each new job of one has all of them
// counted.
const (
	maxWorkerName = 255
	maxLeaseBytes = 32 << 20
	maxMinQueues  = 32
)

// Lease leases one job; nil if there was none in time.
func (s *Service) Lease(ctx context.Context, caller Caller, o LeaseOptions) (*Lease, error) {
	o.Max, o.Min = 1, 0
	leases, err := s.LeaseMany(ctx, caller, o)
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	return &leases[0], nil
}

// LeaseMany leases several jobs; fewer or none if there were not enough in time.
func (s *Service) LeaseMany(ctx context.Context, caller Caller, o LeaseOptions) ([]Lease, error) {
	for i, queue := range o.Queues {
		if err := caller.may(access.Consume, queue); err != nil {
			return nil, err
		}
		if queue == "" || len(queue) > core.MaxQueueName {
			return nil, invalid(fmt.Sprintf("queues[%d]", i), "the name of a queue has 1 to %d bytes", core.MaxQueueName)
		}
	}
	if len(o.Worker) > maxWorkerName {
		return nil, invalid("worker", "worker must not be longer than %d bytes", maxWorkerName)
	}
	if o.Min > max(o.Max, 1) {
		return nil, invalid("min", "min must not be more than max")
	}
	if o.Min > 1 && len(o.Queues) > maxMinQueues {
		return nil, invalid("min", "min is for at most %d queues", maxMinQueues)
	}
	if o.Worker == "" {
		o.Worker = workerName(caller)
	}
	c := s.openAs(caller, o.Worker)
	defer c.Close()
	if err := s.learnTokenKey(ctx, c); err != nil {
		return nil, err
	}
	op := &core.Lease{
		Queues: o.Queues, Pick: core.PickInOrder, Holder: core.HeldByWorker, Worker: o.Worker, LeaseFor: o.LeaseFor,
		Version: text(o.Version), Max: o.Max, Min: o.Min, MaxBytes: maxLeaseBytes,
	}
	if o.Wait > 0 {
		op.Deadline = s.Now().Add(o.Wait)
	}
	c.Do(op)
	replies, err := c.leased(ctx)
	if err != nil {
		return nil, err
	}
	leases := make([]Lease, len(replies))
	for i := range replies {
		leases[i] = s.leaseOf(&replies[i], o.Worker)
		leases[i].Job.Version = o.Version
	}
	return leases, nil
}

// leased waits for the jobs of the client's lease. After an error, all of them have been released.
func (c *session) leased(ctx context.Context) ([]core.Reply, error) {
	jobs, err := c.Leased(ctx)
	if err == nil && len(jobs) > 0 && ctx.Err() != nil { // the client has disconnected
		err = context.Cause(ctx)
	}
	for i := 0; err == nil && i < len(jobs); i++ { // a reload may have removed the right during the wait
		err = c.caller.may(access.Consume, jobs[i].Job.Queue)
	}
	if err == nil {
		err = c.committed(ctx, client.Latest(jobs)) // see core.Submit.Window
	}
	if err != nil {
		c.Release(jobs)
		if lost, _ := c.Lost(); lost {
			err = errNoLeader
		}
		return nil, c.refusal(err)
	}
	return jobs, nil
}

// workerName is the name of a worker that has not sent one.
func workerName(caller Caller) string {
	if caller.Principal != nil && caller.Principal.Name() != "" {
		return caller.Principal.Name()
	}
	if host, _, err := net.SplitHostPort(caller.Address); err == nil {
		return "http@" + host
	}
	return "http"
}

func (s *Service) leaseOf(r *core.Reply, worker string) Lease {
	info := r.LeasedInfo(worker)
	view := s.viewOf(&info)
	view.showBody(r.Job, core.MaxBodyBytes)
	token := leaseToken{seq: r.Seq, leasedAt: r.Lease.LeasedAt, span: r.Lease.LeaseFor}
	return Lease{Token: s.formatToken(token), Job: view}
}

// FailOptions describe a failure.
type FailOptions struct {
	Class     string
	Message   string
	Backtrace []string
	RetryAt   core.Instant // zero: by the job's back-off
	Final     bool         // no further attempt
}

// Limits of a stored failure.
const (
	maxErrorClass   = 1 << 10
	maxErrorMessage = 64 << 10
	maxBacktrace    = 1000 // lines
)

// Result is the result of a job in one of two forms; the zero value is an empty one.
type Result struct {
	JSON  json.RawMessage // a string means its text, any other value itself
	Bytes []byte
}

// bytes is the stored form of the result.
func (r *Result) bytes() ([]byte, error) {
	switch {
	case r.JSON != nil && r.Bytes != nil:
		return nil, invalid("result_base64", "result and result_base64 exclude each other")
	case r.Bytes != nil:
		return r.Bytes, nil
	case string(r.JSON) == "null":
		return nil, nil
	case len(r.JSON) == 0 || r.JSON[0] != '"':
		return r.JSON, nil
	}
	var text string
	if err := json.Unmarshal(r.JSON, &text); err != nil {
		return nil, invalid("result", "result: %v", err)
	}
	return []byte(text), nil
}

// Complete ends a leased job as done.
func (s *Service) Complete(ctx context.Context, caller Caller, token string, result Result) error {
	data, err := result.bytes()
	if err != nil {
		return err
	}
	return s.finish(ctx, caller, token, func(t leaseToken) core.Op {
		return &core.Complete{Ref: t.ref(), If: t.held(), Authority: core.ByLeased, Result: data}
	})
}

// Fail reports a failure of a leased job. The job's policy decides what happens next.
func (s *Service) Fail(ctx context.Context, caller Caller, token string, o FailOptions) error {
	return s.finish(ctx, caller, token, func(t leaseToken) core.Op { return o.op(t) })
}

func (o *FailOptions) op(t leaseToken) *core.Fail {
	f := &core.Failure{
		Type: cutText([]byte(text(o.Class)), maxErrorClass), Message: cutText([]byte(text(o.Message)), maxErrorMessage),
		Backtrace: o.Backtrace[:min(len(o.Backtrace), maxBacktrace)],
	}
	return &core.Fail{
		Ref: t.ref(), If: t.held(), Authority: core.ByLeased, Failure: f, RetryAt: o.RetryAt, Final: o.Final,
	}
}

// Release returns a leased job as if it had not been leased.
func (s *Service) Release(ctx context.Context, caller Caller, token string) error {
	c := s.open(caller)
	defer c.Close()
	t, err := s.tokenOf(ctx, c, token)
	if err != nil {
		return err
	}
	epoch, err := s.heldLease(ctx, c, t)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, &core.Release{Ref: t.ref(), Epoch: epoch})
	return leaseLost(err)
}

// LeaseState is the state of a lease, in the answer to a worker's report.
type LeaseState struct {
	LeaseUntil      time.Time `json:"lease_until" doc:"when the lease ends"`
	CancelRequested bool      `json:"cancel_requested" doc:"the worker should stop: fail the job, or complete it if it is already done"`
}

// Report stores the progress of a leased job, and extends the lease like Heartbeat.
func (s *Service) Report(
	ctx context.Context, caller Caller, token string, p core.Progress, extend time.Duration,
) (LeaseState, error) {
	return s.report(ctx, caller, token, core.Report{Progress: p}, extend)
}

// Heartbeat extends a lease to its full duration from now, or to extend if that is not zero.
func (s *Service) Heartbeat(
	ctx context.Context, caller Caller, token string, extend time.Duration,
) (LeaseState, error) {
	return s.report(ctx, caller, token, core.Report{Heartbeat: true}, extend)
}

func (s *Service) report(
	ctx context.Context, caller Caller, token string, op core.Report, extend time.Duration,
) (LeaseState, error) {
	return s.keepLease(ctx, caller, token, func(t leaseToken) core.Op {
		op.Tag, op.Ref, op.If, op.Authority = reportTag, t.ref(), t.held(), core.ByLeased
		op.ExtendUntil = s.Now().Add(cmp.Or(extend, t.span))
		return &op
	})
}

// keepLease applies a report that does not end the lease, and returns the state of the lease.
func (s *Service) keepLease(
	ctx context.Context, caller Caller, token string, op func(leaseToken) core.Op,
) (state LeaseState, err error) {
	c := s.open(caller)
	defer c.Close()
	t, err := s.usableLease(ctx, c, token)
	if err != nil {
		return state, err
	}
	turnOf(ctx).yield()
	commit := core.Commit(0)
	replies, err := c.askAll(op(t), &core.Inspect{Tag: lookTag, Ref: t.ref(), Brief: true})
	for _, r := range replies {
		if commit = max(commit, r.Commit); r.Kind == core.Failed && err == nil {
			err = c.refusal(r.Err)
		}
		if r.Info != nil {
			state = LeaseState{LeaseUntil: r.Info.LeaseUntil.Time(), CancelRequested: r.Info.CancelRequestedAt != 0}
		}
	}
	if late := c.committed(ctx, commit); late != nil {
		return state, late
	}
	return state, leaseLost(err)
}

// Tags of a report and of the look at its lease.
const (
	reportTag = iota + 1
	lookTag
)

// finish applies a report that ends the lease.
func (s *Service) finish(ctx context.Context, caller Caller, token string, op func(leaseToken) core.Op) error {
	c := s.open(caller)
	defer c.Close()
	t, err := s.usableLease(ctx, c, token)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, op(t))
	return leaseLost(err)
}

// usableLease reads a token, and checks that the caller may use its lease. That the lease is held is a condition of the
// report: for a caller who may use every lease, nothing is read before.
func (s *Service) usableLease(ctx context.Context, c *session, token string) (t leaseToken, err error) {
	if t, err = s.tokenOf(ctx, c, token); err != nil || c.caller.mayAll(access.Consume) == nil {
		return t, err
	}
	_, err = s.heldLease(ctx, c, t)
	return t, err
}

// heldLease checks that a lease is held and that the caller may use it. It returns the job's epoch.
func (s *Service) heldLease(ctx context.Context, c *session, t leaseToken) (epoch uint32, err error) {
	r, err := c.ask(&core.Inspect{Ref: t.ref(), Brief: true})
	if err == nil {
		if err := c.caller.mayOf(access.Consume, r.Info.Queue, "job", nil); err != nil {
			return 0, err
		}
		if r.Info.State != core.Leased || r.Info.LeasedAt != t.leasedAt {
			err = errLeaseLost
		}
	}
	if err != nil {
		if late := c.committed(ctx, r.Commit); late != nil {
			return 0, late
		}
		return 0, leaseLost(err)
	}
	return r.Info.Epoch, nil
}

func (t leaseToken) ref() core.Ref { return core.Ref{Seq: t.seq} }

// held is the condition that the job still has the lease of the token.
func (t leaseToken) held() core.Condition { return core.Condition{LeasedAt: t.leasedAt} }

// errLeaseLost is the answer to a worker whose lease is over.
var errLeaseLost = &Error{Code: CodeLeaseLost, Detail: "the lease is no longer held: it ran out, or the job has ended"}

// leaseLost maps all errors that mean a lost lease to one error.
func leaseLost(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code { //nolint:exhaustive // the others stay as they are
	case CodeJobNotFound, CodeConflict, CodeNotLeased, CodeFinished, CodeLeaseLost:
		return errLeaseLost
	}
	return err
}
