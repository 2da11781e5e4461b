// Package client is a client of a Broker for goroutines that block: it waits for replies, for commits and for leased
// jobs. Sessions of front-ends never block, so they use the Broker itself; the HTTP API, SQS, deliveries by push and
// whatever else has a goroutine for each request use this package. It knows no protocol, no rights and no disk.
package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"broker/core"
	"broker/core/notify"
)

// DefaultCommitTimeout is the time that Committed waits for a commit unless Options say otherwise.
const DefaultCommitTimeout = 10 * time.Second

var (
	// ErrCommitTimeout is returned by Committed if the store is too slow. The change may still become durable.
	ErrCommitTimeout = errors.New("timed out waiting for the commit; the change may still apply")
	// ErrNoReply is returned by Ask if the broker has not replied at once.
	ErrNoReply = errors.New("the broker did not reply")
)

// Options describe a client. Its Wake and Lost are set by Open.
type Options struct {
	core.ClientOptions
	CommitTimeout time.Duration   // how long Committed waits; zero: DefaultCommitTimeout
	Ending        <-chan struct{} // closed when the owner ends; every wait returns core.ErrShutdown then; nil: never
}

// Client is a registered client of a broker. One goroutine uses it.
type Client struct {
	broker  core.Broker
	options Options
	id      core.ClientID
	wake    notify.Signal // replies or a commit may be ready
	replies []core.Reply  // fetched but not handled yet
	lost    atomic.Uint32 // known, lostSent or lostUnsent
}

// What is known of the client's replies; see core.ClientOptions.Lost.
const (
	known uint32 = iota
	lostSent
	lostUnsent
)

// Open registers a client; Close it.
func Open(b core.Broker, o Options) *Client {
	c := &Client{broker: b, options: o, wake: notify.NewSignal()}
	if c.options.CommitTimeout == 0 {
		c.options.CommitTimeout = DefaultCommitTimeout
	}
	c.options.Wake, c.options.Lost = c.wake.Set, func(unsent bool) {
		now := lostSent
		if unsent {
			now = lostUnsent
		}
		c.lost.CompareAndSwap(known, now)
	}
	c.id = b.Open(c.options.ClientOptions)
	return c
}

// Close ends all waits of the client and unregisters it.
func (c *Client) Close() { c.broker.Close(c.id) }

// CancelWaits ends all waits of the client and drops its replies.
func (c *Client) CancelWaits() {
	c.Do(&core.CancelWaits{})
	c.replies = nil
}

// Do applies operations. Next and Leased return their replies.
func (c *Client) Do(ops ...core.Op) { c.replies = c.broker.Do(c.id, ops, c.replies) }

// Replied reports whether Next would return without waiting.
func (c *Client) Replied() bool { return len(c.replies) > 0 }

// Woken receives a value when there may be replies or a new commit. Fetch the replies by Do without operations.
func (c *Client) Woken() <-chan struct{} { return c.wake }

// Take returns all replies that have been fetched.
func (c *Client) Take() []core.Reply {
	replies := c.replies
	c.replies = nil
	return replies
}

// Drop removes the fetched replies for which unwanted returns true, and returns how many they were.
func (c *Client) Drop(unwanted func(*core.Reply) bool) int {
	before := len(c.replies)
	c.replies = slices.DeleteFunc(c.replies, func(r core.Reply) bool { return unwanted(&r) })
	return before - len(c.replies)
}

// Wait waits until there is a reply. The error is the cause of the context's end, or core.ErrShutdown.
func (c *Client) Wait(ctx context.Context) error {
	for len(c.replies) == 0 {
		if err := c.fetch(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// fetch waits for a wake-up and fetches the replies. It returns ErrCommitTimeout when late receives; nil: never.
func (c *Client) fetch(ctx context.Context, late <-chan time.Time) error {
	if err := c.sure(); err != nil {
		return err
	}
	select {
	case <-c.wake:
		c.Do()
		return nil
	case <-late:
		return ErrCommitTimeout
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.options.Ending:
		return core.ErrShutdown
	}
}

// Next returns the next reply, as soon as there is one. Its errors are those of Wait.
func (c *Client) Next(ctx context.Context) (core.Reply, error) {
	return c.NextOf(ctx, func(*core.Reply) bool { return true })
}

// NextOf returns the next reply for which wanted returns true. Other replies stay for later calls. Its errors are those
// of Wait.
func (c *Client) NextOf(ctx context.Context, wanted func(*core.Reply) bool) (core.Reply, error) {
	for {
		for i := range c.replies {
			if wanted(&c.replies[i]) {
				r := c.replies[i]
				c.replies = slices.Delete(c.replies, i, i+1)
				return r, nil
			}
		}
		if err := c.fetch(ctx, nil); err != nil {
			return core.Reply{}, err
		}
	}
}

// Ask applies an operation that is answered at once. The error is that of a Failed reply, core.ErrShutdown if nobody
// knows the reply, or ErrNoReply. The reply's commit holds in all cases.
func (c *Client) Ask(op core.Op) (core.Reply, error) {
	replies := c.AskAll(op)
	if len(replies) == 0 {
		return core.Reply{}, cmp.Or(c.sure(), ErrNoReply)
	}
	if r := replies[0]; r.Kind == core.Failed {
		return r, r.Err
	}
	return replies[0], nil
}

// AskAll applies operations that are answered at once, under one lock, and returns their replies in order. Replies to
// earlier operations that wait are left for Next.
func (c *Client) AskAll(ops ...core.Op) []core.Reply {
	if len(ops) == 0 {
		return nil
	}
	replies := c.broker.Do(c.id, ops, nil)
	return slices.DeleteFunc(replies, func(r core.Reply) bool {
		late := r.Kind >= core.Assigned
		if late {
			c.replies = append(c.replies, r)
		}
		return late
	})
}

// HasCommitted reports whether a commit is durable.
func (c *Client) HasCommitted(commit core.Commit) bool { return c.broker.Committed() >= commit }

// ID is the client's number at the broker.
func (c *Client) ID() core.ClientID { return c.id }

// Committed waits until a commit is durable. It returns ErrCommitTimeout, core.ErrStopped, or an
// error of Wait; also if the leader has failed and nobody knows whether the commit is durable.
func (c *Client) Committed(ctx context.Context, commit core.Commit) error {
	if c.HasCommitted(commit) {
		return c.sure()
	}
	timeout := time.NewTimer(c.options.CommitTimeout)
	defer timeout.Stop()
	for !c.HasCommitted(commit) {
		if c.broker.Stopped() {
			return core.ErrStopped
		}
		err := c.fetch(ctx, timeout.C)
		if err != nil && !(errors.Is(err, ErrCommitTimeout) && c.HasCommitted(commit)) {
			return err
		}
	}
	return c.sure()
}

// Lost reports whether the leader of a cluster has failed and nobody knows what the client is to be told. unsent: the
// operations that were under way then have not been applied.
func (c *Client) Lost() (lost, unsent bool) {
	now := c.lost.Load()
	return now != known, now == lostUnsent
}

// sure returns an error if nobody knows what the client is to be told.
func (c *Client) sure() error {
	if lost, _ := c.Lost(); lost {
		return core.ErrShutdown
	}
	return nil
}

// Leased waits for the jobs of a Lease that was applied by Do. If it returns an error, the Lease no longer waits, and
// the caller must Release the jobs that are returned with it.
func (c *Client) Leased(ctx context.Context) (jobs []core.Reply, err error) {
	for more := 1; more > 0; {
		r, err := c.Next(ctx)
		if err != nil {
			return c.cancelLease(jobs), err
		}
		switch r.Kind { //nolint:exhaustive // the others mean that there is no job
		case core.Assigned:
			jobs = append(jobs, r)
		case core.Failed:
			return c.cancelLease(jobs), r.Err
		}
		more = r.N
	}
	return jobs, nil
}

// cancelLease ends the Lease that waits, and appends the jobs that came in the meantime.
func (c *Client) cancelLease(jobs []core.Reply) []core.Reply {
	c.Do(&core.CancelLease{})
	for _, r := range c.replies {
		if r.Kind == core.Assigned {
			jobs = append(jobs, r)
		}
	}
	c.replies = nil
	return jobs
}

// Release gives jobs back as if they had not been leased.
func (c *Client) Release(jobs []core.Reply) {
	ops := make([]core.Op, len(jobs))
	for i := range jobs {
		ops[i] = &core.Release{Ref: core.Ref{Seq: jobs[i].Seq}, Epoch: jobs[i].Lease.Epoch}
	}
	c.AskAll(ops...)
}

// Latest returns the newest commit of some replies.
func Latest(replies []core.Reply) (newest core.Commit) {
	for i := range replies {
		newest = max(newest, replies[i].Commit)
	}
	return newest
}
