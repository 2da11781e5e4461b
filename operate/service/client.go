package service

import (
	"context"
	"errors"
	"slices"

	"broker/core"
	"broker/core/client"
)

// corePage is the number of entries of a list that one request to the core reads.
const corePage = 1000

// session is the broker's client for the time of one call. One goroutine uses it.
type session struct {
	*client.Client
	caller    Caller
	clustered bool // the broker is a node of a cluster
}

// open registers a client for one call; Close it.
func (s *Service) open(caller Caller) *session { return s.openAs(caller, caller.Name()) }

// openAs is open with a name of its own for the client.
func (s *Service) openAs(caller Caller, name string) *session {
	return s.register(caller, core.ClientOptions{
		Protocol: core.HTTP, Address: caller.Address, Identity: caller.Identity, Name: name,
	})
}

// openUnlisted registers a part of the service as a client that does not appear in lists and counts of clients.
func (s *Service) openUnlisted() *session {
	return s.register(Caller{}, core.ClientOptions{Protocol: core.HTTP, Unlisted: true})
}

func (s *Service) register(caller Caller, o core.ClientOptions) *session {
	options := client.Options{ClientOptions: o, CommitTimeout: s.o.CommitTimeout}
	return &session{Client: client.Open(s.o.Broker, options), caller: caller, clustered: s.o.Cluster != nil}
}

// ask applies one operation that is answered at once. A Failed reply becomes an Error.
func (c *session) ask(op core.Op) (core.Reply, error) {
	if is, _ := c.Lost(); is {
		return core.Reply{}, errNoLeader
	}
	r, err := c.Ask(op)
	if lost := c.lost(op); lost != nil {
		return core.Reply{}, lost
	}
	if r.Kind == core.Failed {
		err = c.refusal(err)
	}
	return r, err
}

// refusal is the Error for an error of the core. A broker that has stopped is not the end of a cluster: another node
// leads.
func (c *session) refusal(err error) error {
	if c.clustered && errors.Is(err, core.ErrStopped) {
		return errNoLeader
	}
	return refusal(err)
}

// askAll is ask for several operations, whose Failed replies are no errors.
func (c *session) askAll(ops ...core.Op) ([]core.Reply, error) {
	if is, _ := c.Lost(); is {
		return nil, errNoLeader
	}
	replies := c.AskAll(ops...)
	return replies, c.lost(ops...)
}

// lost is the error of operations whose replies nobody knows, because the leader of the cluster has failed; nil: they
// are known.
func (c *session) lost(ops ...core.Op) error {
	switch lost, unsent := c.Lost(); {
	case !lost:
		return nil
	case unsent, !slices.ContainsFunc(ops, func(op core.Op) bool { return !op.ReadOnly() }):
		return errNoLeader
	}
	return errOutcomeUnknown(c.clustered)
}

// call is ask for operations that must be durable before it returns: changes, and reads of data that a crash may undo.
func (c *session) call(ctx context.Context, op core.Op) (core.Reply, error) {
	turnOf(ctx).yield()
	r, err := c.ask(op)
	err = c.after(ctx, r.Commit, err)
	if op.ReadOnly() && IsCode(err, CodeOutcomeUnknown) {
		err = errNotConfirmed(c.clustered)
	}
	return r, err
}

// after returns the outcome of a change once its commit is on disk. A refusal says something about jobs too: that there
// is none may be true because of another client's change.
func (c *session) after(ctx context.Context, commit core.Commit, err error) error {
	if late := c.committed(ctx, commit); late != nil {
		return late
	}
	return err
}

// committed waits until a commit is on disk. Other calls have their turn meanwhile.
func (c *session) committed(ctx context.Context, commit core.Commit) error {
	if lost, _ := c.Lost(); commit == 0 || !lost && c.HasCommitted(commit) {
		return nil
	}
	turn := turnOf(ctx)
	turn.leave()
	defer turn.enter()
	err := c.Committed(ctx, commit)
	switch {
	case errors.Is(err, client.ErrCommitTimeout):
		return errCommitTimeout
	case errors.Is(err, core.ErrStopped), errors.Is(err, core.ErrShutdown):
		return errOutcomeUnknown(c.clustered)
	}
	return err
}
