package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"broker/access"
	"broker/core"
)

// LeaseResult is the result of a request for one of several leases.
type LeaseResult struct {
	Lease string `json:"lease" doc:"the lease's token"`
	OK    bool   `json:"ok"`
	Code  Code   `json:"code,omitempty" doc:"the error, for programs" example:"lease_lost"`

	LeaseUntil      *time.Time `json:"lease_until,omitempty" doc:"after a heartbeat: when the lease ends"`
	CancelRequested *bool      `json:"cancel_requested,omitempty" doc:"after a heartbeat: whether the worker should stop"`
}

// CompleteMany ends leased jobs as done, each with its result.
func (s *Service) CompleteMany(
	ctx context.Context, caller Caller, tokens []string, results []Result,
) ([]LeaseResult, error) {
	data := make([][]byte, len(results))
	for i := range results {
		var err error
		if data[i], err = results[i].bytes(); err != nil {
			var e *Error
			if errors.As(err, &e) {
				err = &Error{Code: e.Code, Detail: e.Detail, Field: fmt.Sprintf("leases[%d].result", i)}
			}
			return nil, err
		}
	}
	return s.finishMany(ctx, caller, tokens, func(i uint64, t leaseToken, _ uint32) core.Op {
		return &core.Complete{Tag: i, Ref: t.ref(), If: t.held(), Authority: core.ByLeased, Result: data[i]}
	})
}

// FailMany reports failures of leased jobs.
func (s *Service) FailMany(
	ctx context.Context, caller Caller, tokens []string, failures []FailOptions,
) ([]LeaseResult, error) {
	return s.finishMany(ctx, caller, tokens, func(i uint64, t leaseToken, _ uint32) core.Op {
		fail := failures[i].op(t)
		fail.Tag = i
		return fail
	})
}

// ReleaseMany returns leased jobs as if they had not been leased.
func (s *Service) ReleaseMany(ctx context.Context, caller Caller, tokens []string) ([]LeaseResult, error) {
	return s.finishMany(ctx, caller, tokens, func(i uint64, t leaseToken, epoch uint32) core.Op {
		return &core.Release{Tag: i, Ref: t.ref(), Epoch: epoch}
	})
}

// HeartbeatMany extends leases, each to its full duration from now, or to its extend if that is not zero.
func (s *Service) HeartbeatMany(
	ctx context.Context, caller Caller, tokens []string, extend []time.Duration,
) ([]LeaseResult, error) {
	return s.finishMany(ctx, caller, tokens, func(i uint64, t leaseToken, _ uint32) core.Op {
		return &core.Report{
			Tag: i, Ref: t.ref(), If: t.held(), Authority: core.ByLeased, Heartbeat: true,
			ExtendUntil: s.Now().Add(cmp.Or(extend[i], t.span)),
		}
	})
}

// finishMany applies reports about several leases in one commit. Each report succeeds or fails independently. The
// operation is made for the token at an index, which is its tag, and the current epoch of its job.
func (s *Service) finishMany(
	ctx context.Context, caller Caller, tokens []string, op func(uint64, leaseToken, uint32) core.Op,
) ([]LeaseResult, error) {
	if err := caller.maySome(access.Consume); err != nil { // fail early
		return nil, err
	}
	c := s.open(caller)
	defer c.Close()
	if err := s.learnTokenKey(ctx, c); err != nil {
		return nil, err
	}
	results, parsed := make([]LeaseResult, len(tokens)), make([]leaseToken, len(tokens))
	n := uint64(len(tokens)) // added to the tag of a report: the look at its lease
	var looks, ops []core.Op
	for i, token := range tokens {
		t, err := s.parseToken(token)
		if results[i].Lease, parsed[i] = token, t; err != nil {
			results[i].Code = CodeBadLease
			continue
		}
		looks = append(looks, &core.Inspect{Tag: uint64(i), Ref: t.ref(), Brief: true})
	}
	turnOf(ctx).yield()
	commit := core.Commit(0)
	known, err := c.askAll(looks...)
	if err != nil {
		return nil, err
	}
	for _, r := range known {
		i, t := r.Tag, parsed[r.Tag]
		commit = max(commit, r.Commit)
		switch {
		case r.Kind == core.Failed && !errors.Is(r.Err, core.ErrNotFound):
			return nil, c.refusal(r.Err)
		case r.Info == nil || r.Info.State != core.Leased || r.Info.LeasedAt != t.leasedAt:
			results[i].Code = CodeLeaseLost
		case caller.may(access.Consume, r.Info.Queue) != nil:
			results[i].Code = CodeForbidden
		default:
			ops = append(ops, op(i, t, r.Info.Epoch))
			if _, is := ops[len(ops)-1].(*core.Report); is {
				ops = append(ops, &core.Inspect{Tag: n + i, Ref: t.ref(), Brief: true})
			}
		}
	}
	replies, err := c.askAll(ops...)
	if err != nil {
		return nil, err
	}
	for _, r := range replies {
		commit = max(commit, r.Commit)
		if err := results[r.Tag%n].take(c, &r); err != nil {
			return nil, err
		}
	}
	return results, c.committed(ctx, commit)
}

// take records a reply. It returns an error if the broker no longer takes changes, as then nothing is known of the
// other leases either.
func (l *LeaseResult) take(c *session, r *core.Reply) error {
	switch {
	case r.Kind == core.Inspected:
		if l.OK {
			until, stop := r.Info.LeaseUntil.Time(), r.Info.CancelRequestedAt != 0
			l.LeaseUntil, l.CancelRequested = &until, &stop
		}
	case r.Kind != core.Failed:
		l.OK = true
	case errors.Is(r.Err, core.ErrStopped), errors.Is(r.Err, core.ErrShutdown):
		return c.refusal(r.Err)
	default:
		var e *Error
		if err := leaseLost(c.refusal(r.Err)); !errors.As(err, &e) {
			return err
		}
		l.OK, l.Code = false, e.Code
	}
	return nil
}
