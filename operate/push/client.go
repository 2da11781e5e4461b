package push

import (
	"context"
	"errors"
	"time"

	"broker/core"
	"broker/core/notify"
)

// client is the broker's client of a target. One goroutine uses it.
type client struct {
	b       core.Broker
	id      core.ClientID
	wake    notify.Signal
	replies []core.Reply
}

// openClient registers a client that lists leave out, because a target has its own row.
func openClient(b core.Broker) *client {
	c := &client{b: b, wake: notify.NewSignal()}
	c.id = b.Open(core.ClientOptions{Protocol: core.HTTP, Wake: c.wake.Set, Unlisted: true})
	return c
}

func (c *client) close() { c.b.Close(c.id) }

func (c *client) do(ops ...core.Op) { c.replies = c.b.Do(c.id, ops, c.replies) }

// next is the next reply, as soon as there is one.
func (c *client) next(ctx context.Context) (core.Reply, error) {
	for len(c.replies) == 0 {
		select {
		case <-c.wake:
			c.do()
		case <-ctx.Done():
			return core.Reply{}, context.Cause(ctx)
		}
	}
	r := c.replies[0]
	c.replies = c.replies[1:]
	return r, nil
}

// lease waits for jobs. After an error, all of them have been released.
func (c *client) lease(ctx context.Context, op *core.Lease) (jobs []core.Reply, err error) {
	c.do(op)
	for more := 1; more > 0 && err == nil; {
		var r core.Reply
		if r, err = c.next(ctx); err != nil {
			break
		}
		switch r.Kind { //nolint:exhaustive // the others mean that there is no job
		case core.Assigned:
			jobs = append(jobs, r)
		case core.Failed:
			err = r.Err
		}
		more = r.N
	}
	if err == nil {
		return jobs, nil
	}
	c.do(&core.CancelLease{})
	for _, r := range c.replies {
		if r.Kind == core.Assigned {
			jobs = append(jobs, r)
		}
	}
	c.replies = nil
	c.giveBack(jobs)
	return nil, err
}

// giveBack releases jobs as if they had not been leased.
func (c *client) giveBack(jobs []core.Reply) {
	for i := range jobs {
		c.do(&core.Release{Ref: core.Ref{Seq: jobs[i].Seq}, Epoch: jobs[i].Lease.Epoch})
	}
	c.replies = nil
}

// errNotDurable means that the store has failed or is too slow.
var errNotDurable = errors.New("the lease is not durable")

// makeDurable waits until the leases of jobs are on disk.
func (c *client) makeDurable(ctx context.Context, jobs []core.Reply) error {
	var commit core.Commit
	for i := range jobs {
		c.do(&core.Inspect{Ref: core.Ref{Seq: jobs[i].Seq}, Brief: true})
		commit = max(commit, jobs[i].Commit)
	}
	for _, r := range c.replies {
		commit = max(commit, r.Commit)
	}
	c.replies = nil
	timeout := time.NewTimer(commitWait)
	defer timeout.Stop()
	for c.b.Committed() < commit {
		if c.b.Stopped() {
			return errNotDurable
		}
		select {
		case <-c.wake:
			c.do()
		case <-timeout.C:
			return errNotDurable
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
