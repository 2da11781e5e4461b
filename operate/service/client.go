package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"broker/core"
	"broker/core/notify"
)

// corePage is the number of entries of a list that one request to the core reads.
const corePage = 1000

// defaultCommitTimeout is the default time that a change waits for its commit.
const defaultCommitTimeout = 10 * time.Second

// client is the broker's client for the time of one call. One goroutine uses it.
type client struct {
	b       core.Broker
	caller  Caller
	options core.ClientOptions
	id      core.ClientID
	wake    notify.Signal
	replies []core.Reply // fetched but not handled yet

	commitTimeout time.Duration
}

// open registers a client for one call; close it.
func (s *Service) open(caller Caller) *client { return s.openAs(caller, caller.Name()) }

// openAs is open with a name of its own for the client.
func (s *Service) openAs(caller Caller, name string) *client {
	return s.register(caller, core.ClientOptions{Protocol: core.HTTP, Address: caller.Address, Identity: caller.Identity, Name: name})
}

// openUnlisted registers a part of the service as a client that does not appear in lists and counts of clients.
func (s *Service) openUnlisted() *client {
	return s.register(Caller{}, core.ClientOptions{Protocol: core.HTTP, Unlisted: true})
}

func (s *Service) register(caller Caller, o core.ClientOptions) *client {
	c := &client{b: s.o.Broker, caller: caller, options: o, wake: notify.NewSignal(), commitTimeout: s.o.CommitTimeout}
	c.options.Wake = c.wake.Set
	c.id = c.b.Open(c.options)
	return c
}

// reopen cancels all waits of the client.
func (c *client) reopen() {
	c.close()
	c.replies = nil
	c.id = c.b.Open(c.options)
}

func (c *client) close() { c.b.Close(c.id) }

// do applies operations; their replies are fetched by next.
func (c *client) do(ops ...core.Op) { c.replies = c.b.Do(c.id, ops, c.replies) }

// next is the next reply, as soon as there is one.
func (c *client) next(ctx context.Context) (core.Reply, error) {
	for len(c.replies) == 0 {
		if err := c.sleep(ctx); err != nil {
			return core.Reply{}, err
		}
		c.do()
	}
	r := c.replies[0]
	c.replies = c.replies[1:]
	return r, nil
}

// nextOf is the next reply for which wanted returns true. Other replies stay for later.
func (c *client) nextOf(ctx context.Context, wanted func(*core.Reply) bool) (core.Reply, error) {
	for {
		for i := range c.replies {
			if wanted(&c.replies[i]) {
				r := c.replies[i]
				c.replies = slices.Delete(c.replies, i, i+1)
				return r, nil
			}
		}
		if err := c.sleep(ctx); err != nil {
			return core.Reply{}, err
		}
		c.do()
	}
}

// sleep waits for a wake-up.
func (c *client) sleep(ctx context.Context) error {
	select {
	case <-c.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errNoReply = errors.New("the broker did not reply")

// ask applies one operation that is answered at once. A Failed reply becomes an error.
func (c *client) ask(op core.Op) (core.Reply, error) {
	c.do(op)
	if len(c.replies) == 0 {
		return core.Reply{}, errNoReply
	}
	r := c.replies[0]
	c.replies = c.replies[1:]
	if r.Kind == core.Failed {
		return r, refusal(r.Err)
	}
	return r, nil
}

// askAll applies operations that are answered at once, under one lock.
func (c *client) askAll(ops []core.Op) []core.Reply {
	if len(ops) == 0 {
		return nil
	}
	c.do(ops...)
	replies := c.replies
	c.replies = nil
	return replies
}

// call is ask for operations that must be durable before it returns: changes, and reads of data that a crash may undo.
func (c *client) call(ctx context.Context, op core.Op) (core.Reply, error) {
	turnOf(ctx).yield()
	r, err := c.ask(op)
	if late := c.committed(ctx, r.Commit); late != nil {
		return r, late
	}
	return r, err
}

// committed waits until a commit is on disk.
func (c *client) committed(ctx context.Context, commit core.Commit) error {
	if c.b.Committed() >= commit {
		return nil
	}
	turn := turnOf(ctx)
	turn.leave()
	defer turn.enter()
	timeout := time.NewTimer(c.commitTimeout)
	defer timeout.Stop()
	for c.b.Committed() < commit {
		if c.b.Stopped() {
			return errOutcomeUnknown
		}
		select {
		case <-c.wake:
			c.do()
		case <-timeout.C:
			return errCommitTimeout
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
