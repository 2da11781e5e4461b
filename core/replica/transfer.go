package replica

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft"
)

// Transfer transfers leadership to another member; empty: to the first member that answers and can lead. raft accepts
// no entries during a transfer, so members that cannot lead are not tried.
func (n *Node) Transfer(ctx context.Context, to string) error {
	s, err := n.successor(ctx, to)
	if err != nil || string(s.ID) == n.o.ID {
		return err
	}
	n.yield(ctx, Member{ID: string(s.ID), Address: string(s.Address)})
	f := n.raft.LeadershipTransferToServer(s.ID, s.Address)
	done := make(chan error, 1)
	go func() { done <- f.Error() }() // ends after the election timeout at the latest
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Successor returns the member with this id, if it can lead; empty: the first member that answers and can lead.
func (n *Node) Successor(ctx context.Context, id string) (string, error) {
	s, err := n.successor(ctx, id)
	return string(s.ID), err
}

func (n *Node) successor(ctx context.Context, id string) (raft.Server, error) {
	switch {
	case !n.IsLeader():
		return raft.Server{}, errNotLeader
	case id == n.o.ID:
		return raft.Server{ID: raft.ServerID(id)}, nil
	}
	committed := n.raft.CommitIndex()
	type result struct {
		s   raft.Server
		err error
	}
	servers := n.servers()
	results := make(chan result, len(servers))
	asked := 0
	for _, s := range servers {
		if string(s.ID) == n.o.ID || id != "" && string(s.ID) != id {
			continue
		}
		asked++
		go func() { // ends within statusWithin
			st, err := n.ask(ctx, Member{ID: string(s.ID), Address: string(s.Address)}, statusWithin)
			if err == nil {
				err = canLead(s, st, committed)
			} else {
				err = fmt.Errorf("node %s does not answer: %w", s.ID, err)
			}
			results <- result{s, err}
		}()
	}
	err := error(ErrNotMember)
	for range asked {
		r := <-results
		if r.err == nil {
			return r.s, nil
		}
		err = r.err
	}
	return raft.Server{}, err
}

// canLead returns why a member cannot become the leader; nil: it can.
func canLead(s raft.Server, st *Status, committed uint64) error {
	switch {
	case s.Suffrage != raft.Voter:
		return fmt.Errorf("node %s has no vote", s.ID)
	case st.Applied+votesWithin < committed:
		return fmt.Errorf("node %s lags behind by %d entries", s.ID, committed-st.Applied)
	}
	return nil
}
