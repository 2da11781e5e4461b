package replica

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/internal/record"
	"broker/core/internal/store"
)

// watchLead begins and ends Leaderships as raft wins and loses elections. A leader whose journal has failed while it still
// leads begins anew, since an entry of unknown fate is between it and its store.
func (n *Node) watchLead() {
	var current *Leadership
	end := func() {
		if current != nil {
			current.end()
			n.log.Warn("this node no longer leads", "term", current.Term)
		}
		current = nil
	}
	defer end()
	for {
		select {
		case leads := <-n.notify:
			end()
			if leads {
				current = n.begin()
			}
		case j := <-n.ended: // such as by a transfer that did not happen
			if current == nil || current.journal != j {
				continue
			}
			end()
			if n.raft.State() == raft.Leader {
				current = n.begin()
			}
		case <-n.closed:
			return
		}
	}
}

// begin waits until the store has everything that was committed before, and appends the entry that opens the epoch: from then
// on no entry of an engine before can be applied. nil: the lead is lost already.
func (n *Node) begin() *Leadership {
	n.elections.Add(1)
	started := n.now()
	term := n.raft.CurrentTerm()
	for {
		if err := n.raft.Barrier(0).Error(); err != nil {
			n.log.Warn("the lead was lost before it began", "term", term, "error", err.Error())
			return nil
		}
		at := n.store.Load().Position()
		j := &journal{raft: n.raft, epoch: term, chain: at.Chain, failed: n.ended}
		j.format.Store(int32(at.Format)) //nolint:gosec // at most record.NewestFormat
		err := j.Append(&record.Entry{
			Position: record.Position{Number: at.Number + 1, At: n.o.Clock.Now()}, Prev: at.Number, Batch: &record.CommitBatch{},
		})
		if errors.Is(err, store.ErrSequence) {
			continue // one of the last leader came in between; it is the last, since that one has stopped
		}
		if err != nil {
			n.log.Warn("the lead was lost before it began", "term", term, "error", err.Error())
			return nil
		}
		l := &Leadership{n: n, journal: j, standby: n.takeStandby(), lost: make(chan struct{}), Term: term}
		n.log.Info("this node leads", "term", term, "entries", at.Number, "took_ms", n.now().Sub(started).Milliseconds())
		select {
		case <-n.leads: // one that nobody has taken, and that has ended
		default:
		}
		n.journal.Store(j)
		n.leads <- l
		return l
	}
}

// watchDisk cuts the log, and notices when a disk fails.
func (n *Node) watchDisk() {
	failed, logFailed := n.store.Load().Failed(), n.logs.log.Failed()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-n.closed:
			return
		case <-failed:
			failed = n.store.Load().Failed()
			if err := n.store.Load().Err(); err != nil {
				n.fail(err)
				return
			}
		case <-logFailed:
			n.fail(n.logs.log.Err())
			return
		case <-tick.C:
			failed = n.store.Load().Failed() // it may have been replaced
			n.checkFree()
			n.cutLog()
		}
	}
}

// cutLog cuts the log if it is too large.
func (n *Node) cutLog() {
	size := n.logs.log.Bytes()
	first, last := n.logs.log.Bounds()
	if size < n.o.MaxLogBytes || first == 0 {
		return
	}
	c := n.raft.ReloadableConfig()
	c.TrailingLogs = uint64(float64(last-first+1) * float64(n.o.MaxLogBytes/2) / float64(size))
	if err := n.raft.ReloadConfig(c); err != nil {
		n.log.Warn("the log cannot be cut", "error", err.Error())
		return
	}
	if err := n.raft.Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		n.log.Warn("the log cannot be cut yet", "error", err.Error())
	}
}

// Transfer hands the lead to another member; empty: to any.
func (n *Node) Transfer(ctx context.Context, to string) error {
	if n.raft.State() != raft.Leader {
		return ErrNotLeader
	}
	var f raft.Future
	if to == "" {
		f = n.raft.LeadershipTransfer()
	} else {
		m, there := find(n.Members(), to)
		if !there {
			return ErrNotMember
		}
		if to == n.o.ID {
			return nil
		}
		f = n.raft.LeadershipTransferToServer(raft.ServerID(m.ID), raft.ServerAddress(m.Address))
	}
	done := make(chan error, 1)
	go func() { done <- f.Error() }() // ends after the election timeout at the latest
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
