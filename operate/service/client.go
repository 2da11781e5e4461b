package service

import (
	"context"
	"errors"

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
	r, err := c.Ask(op)
	if r.Kind == core.Failed {
		err = refusal(err)
	}
	return r, err
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
	if c.HasCommitted(commit) {
		return nil
	}
	turn := turnOf(ctx)
	turn.leave()
	defer turn.enter()
	err := c.Committed(ctx, commit)
	switch {
	case errors.Is(err, client.ErrCommitTimeout):
		return errCommitTimeout
	case errors.Is(err, core.ErrStopped):
		return errOutcomeUnknown(c.clustered)
	}
	return err
}
