package sqs

import (
	"context"
	"errors"
	"slices"
	"time"

	"broker/core"
)

// commitTimeout is the time that a change waits for its commit.
const commitTimeout = 10 * time.Second

var (
	errCommitTimeout = errors.New("timed out waiting for the commit; the change may still apply")
	errNoReply       = errors.New("the broker did not reply")
)

// client is a broker client for one request. One goroutine uses it.
type client struct {
	broker  core.Broker
	id      core.ClientID
	wake    chan struct{}   // capacity 1: replies or a commit may be ready
	ending  <-chan struct{} // closed when the front-end ends
	replies []core.Reply    // fetched but not handled yet
}

// open registers a client; close it.
func (f *Frontend) open(from caller) *client {
	c := &client{broker: f.broker, wake: make(chan struct{}, 1), ending: f.ctx.Done()}
	wake := func() {
		select {
		case c.wake <- struct{}{}:
		default: // already awake
		}
	}
	c.id = c.broker.Open(core.ClientOptions{
		Protocol: core.SQS, Wake: wake, Address: from.address, Identity: from.identity, Name: from.name(), Unlisted: from.internal,
	})
	return c
}

func (c *client) close() { c.broker.Close(c.id) }

// all applies operations that are answered at once, and returns their replies in order.
func (c *client) all(ops ...core.Op) []core.Reply { return c.broker.Do(c.id, ops, nil) }

// one applies one operation that is answered at once. A Failed reply becomes an error.
func (c *client) one(op core.Op) (core.Reply, error) {
	replies := c.all(op)
	if len(replies) == 0 {
		return core.Reply{}, errNoReply
	}
	r := replies[0]
	if r.Kind == core.Failed {
		return r, r.Err
	}
	return r, nil
}

// next is the next reply to an operation that may wait.
func (c *client) next(ctx context.Context) (core.Reply, error) {
	if err := c.await(ctx); err != nil {
		return core.Reply{}, err
	}
	r := c.replies[0]
	c.replies = slices.Delete(c.replies, 0, 1)
	return r, nil
}

// await waits until there is a reply.
func (c *client) await(ctx context.Context) error {
	for len(c.replies) == 0 {
		select {
		case <-c.wake:
			c.replies = c.broker.Do(c.id, nil, c.replies)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.ending:
			return core.ErrShutdown
		}
	}
	return nil
}

// committed waits until a commit is on disk.
func (c *client) committed(ctx context.Context, commit core.Commit) error {
	if c.broker.Committed() >= commit {
		return nil
	}
	timeout := time.NewTimer(commitTimeout)
	defer timeout.Stop()
	for c.broker.Committed() < commit {
		if c.broker.Stopped() {
			return core.ErrStopped
		}
		select {
		case <-c.wake:
			c.replies = c.broker.Do(c.id, nil, c.replies)
		case <-timeout.C:
			return errCommitTimeout
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.ending:
			return core.ErrShutdown
		}
	}
	return nil
}

// latest is the newest commit of some replies.
func latest(replies []core.Reply) (newest core.Commit) {
	for i := range replies {
		newest = max(newest, replies[i].Commit)
	}
	return newest
}
