package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"time"

	"broker/core"
	"broker/frontends/access"
)

// LeaseOptions say for what and how long a worker asks.
type LeaseOptions struct {
	Queues   []string      // the first that has a job
	Wait     time.Duration // zero: not at all
	Worker   string        // the worker's own name; empty: that of its principal or host
	LeaseFor time.Duration // zero: as the job says, else the default lease
}

// Lease is a job in a worker's hands.
type Lease struct {
	Token string `json:"lease" doc:"names the lease in the worker's further requests"`
	Job   Job    `json:"job"`
}

// maxWorkerName bounds the name of a worker, in bytes.
const maxWorkerName = 255

// Lease hands out one job; nil if there was none in time.
func (s *Service) Lease(ctx context.Context, caller Caller, o LeaseOptions) (*Lease, error) {
	for _, queue := range o.Queues {
		if err := caller.may(access.Consume, queue); err != nil {
			return nil, err
		}
		if queue == "" || len(queue) > core.MaxQueueName {
			return nil, invalid("path.name", "the name of a queue has 1 to %d bytes", core.MaxQueueName)
		}
	}
	if len(o.Worker) > maxWorkerName {
		return nil, invalid("body.worker", "worker must not be longer than %d bytes", maxWorkerName)
	}
	if o.Worker == "" {
		o.Worker = workerName(caller)
	}
	c := s.open(caller, o.Worker)
	defer c.close()
	op := &core.Lease{Queues: o.Queues, Pick: core.PickInOrder, Holder: core.HeldByWorker, Worker: o.Worker}
	if o.Wait > 0 {
		op.Deadline = s.Now().Add(o.Wait)
	}
	if o.LeaseFor > 0 {
		for _, queue := range o.Queues {
			c.do(&core.Register{Queue: queue, LeaseFor: o.LeaseFor})
		}
		op.Queues = nil
	}
	c.do(op)
	r, err := c.next(ctx)
	if err != nil {
		c.giveUpLease()
		return nil, err
	}
	switch {
	case r.Kind == core.Failed:
		return nil, refusal(r.Err)
	case r.Kind != core.Assigned:
		return nil, nil //nolint:nilnil // no job is not an error
	case ctx.Err() != nil: // nobody is left to take it
		c.do(&core.Release{Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch})
		return nil, context.Cause(ctx)
	}
	if err := c.committed(ctx, r.Commit); err != nil { // only in a cluster a lease rests on a commit
		c.do(&core.Release{Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch})
		return nil, err
	}
	return s.leaseOf(&r, o.Worker), nil
}

// workerName is what a worker without a name is called.
func workerName(caller Caller) string {
	if caller.Principal != nil && caller.Principal.Name() != "" {
		return caller.Principal.Name()
	}
	if host, _, err := net.SplitHostPort(caller.Address); err == nil {
		return "http@" + host
	}
	return "http"
}

// giveUpLease ends the parked lease; a job that has just come goes back.
func (c *client) giveUpLease() {
	c.do(&core.CancelLease{})
	for _, r := range c.replies {
		if r.Kind == core.Assigned {
			c.do(&core.Release{Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch})
		}
	}
}

func (s *Service) leaseOf(r *core.Reply, worker string) *Lease {
	l, job := r.Lease, r.Job
	info := core.JobInfo{
		Seq: r.Seq, Job: job, Queue: job.Queue, State: core.Leased, Priority: job.Priority, Origin: job.Origin,
		CreatedAt: job.CreatedAt, ReadyAt: l.EnqueuedAt, ExpiresAt: job.ExpiresAt, LeasedAt: l.LeasedAt, ChangedAt: l.LeasedAt,
		LeaseUntil: l.LeasedAt.Add(l.LeaseFor), Worker: worker, Attempts: l.Attempts, Fails: l.Fails, Epoch: l.Epoch,
		Failure: l.Failure, Ephemeral: job.Ephemeral, BodyBytes: len(job.Body),
	}
	view := s.viewOf(&info)
	view.showBody(job, core.MaxBodyBytes)
	return &Lease{Token: s.formatToken(leaseToken{seq: r.Seq, leasedAt: l.LeasedAt, span: l.LeaseFor}), Job: view}
}

// FailOptions describe a failure.
type FailOptions struct {
	Class     string
	Message   string
	Backtrace []string
	RetryAt   core.Instant // zero: the job's back-off decides
	Final     bool         // no further try
}

// Limits of what is kept of a failure.
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

// bytes is the result as it is stored.
func (r *Result) bytes() ([]byte, error) {
	switch {
	case r.JSON != nil && r.Bytes != nil:
		return nil, invalid("body.result_base64", "result and result_base64 exclude each other")
	case r.Bytes != nil:
		return r.Bytes, nil
	case string(r.JSON) == "null":
		return nil, nil
	case len(r.JSON) == 0 || r.JSON[0] != '"':
		return r.JSON, nil
	}
	var text string
	if err := json.Unmarshal(r.JSON, &text); err != nil {
		return nil, invalid("body.result", "result: %v", err)
	}
	return []byte(text), nil
}

// Complete ends a leased job as done.
func (s *Service) Complete(ctx context.Context, caller Caller, token string, result Result) error {
	data, err := result.bytes()
	if err != nil {
		return err
	}
	return s.finish(ctx, caller, token, func(t leaseToken, _ uint32) core.Op {
		return &core.Complete{Ref: t.ref(), If: t.held(), Authority: core.ByLeased, Result: data}
	})
}

// Fail reports a failure of a leased job; its policy says what follows.
func (s *Service) Fail(ctx context.Context, caller Caller, token string, o FailOptions) error {
	f := &core.Failure{
		Type: cutText([]byte(text(o.Class)), maxErrorClass), Message: cutText([]byte(text(o.Message)), maxErrorMessage),
		Backtrace: o.Backtrace[:min(len(o.Backtrace), maxBacktrace)],
	}
	return s.finish(ctx, caller, token, func(t leaseToken, _ uint32) core.Op {
		return &core.Fail{Ref: t.ref(), If: t.held(), Authority: core.ByLeased, Failure: f, RetryAt: o.RetryAt, Final: o.Final}
	})
}

// Release gives a leased job back as if it had not been leased.
func (s *Service) Release(ctx context.Context, caller Caller, token string) error {
	return s.finish(ctx, caller, token, func(t leaseToken, epoch uint32) core.Op {
		return &core.Release{Ref: t.ref(), Epoch: epoch}
	})
}

// Report says how far a leased job is, and extends the lease as Heartbeat does.
func (s *Service) Report(ctx context.Context, caller Caller, token string, p core.Progress, extend time.Duration) error {
	return s.report(ctx, caller, token, core.Report{Progress: p}, extend)
}

// Heartbeat extends a lease: to its full span from now, or to extend if that is not zero.
func (s *Service) Heartbeat(ctx context.Context, caller Caller, token string, extend time.Duration) error {
	return s.report(ctx, caller, token, core.Report{Heartbeat: true}, extend)
}

func (s *Service) report(ctx context.Context, caller Caller, token string, op core.Report, extend time.Duration) error {
	return s.finish(ctx, caller, token, func(t leaseToken, _ uint32) core.Op {
		op.Ref, op.If, op.Authority = t.ref(), t.held(), core.ByLeased
		op.ExtendUntil = s.Now().Add(cmp.Or(extend, t.span))
		return &op
	})
}

// finish applies what the holder of a lease says of its job. The operation is made for the lease of the token, and the
// epoch that the job has now.
func (s *Service) finish(ctx context.Context, caller Caller, token string, op func(leaseToken, uint32) core.Op) error {
	t, err := s.parseToken(token)
	if err != nil {
		return err
	}
	c := s.open(caller, caller.Name())
	defer c.close()
	r, err := c.ask(&core.Inspect{Ref: t.ref(), Brief: true})
	if err == nil {
		if err := caller.may(access.Consume, r.Info.Queue); err != nil {
			return err
		}
		if r.Info.State != core.Leased || r.Info.LeasedAt != t.leasedAt {
			err = errLeaseLost
		}
	}
	if err != nil {
		if late := c.committed(ctx, r.Commit); late != nil {
			return late
		}
		return leaseLost(err)
	}
	_, err = c.call(ctx, op(t, r.Info.Epoch))
	return leaseLost(err)
}

func (t leaseToken) ref() core.Ref { return core.Ref{Seq: t.seq} }

// held is the condition that the lease is still the one of the token.
func (t leaseToken) held() core.Condition { return core.Condition{LeasedAt: t.leasedAt} }

// errLeaseLost is the answer to a worker whose lease is over.
var errLeaseLost = &Error{Code: CodeLeaseLost, Detail: "the lease is no longer held: it ran out, or the job has ended"}

// leaseLost gives the refusals of a lease that is no longer held one name.
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
