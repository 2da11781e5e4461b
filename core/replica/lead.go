package replica

import (
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
				current = n.begin(n.lease.now())
			}
		case <-n.hangsChanged:
			if n.hangs.Load() {
				end()
			} else if current == nil && n.raft.State() == raft.Leader { // the others could not elect another one
				current = n.begin(n.lease.now())
			}
		case j := <-n.ended: // such as by a transfer that did not happen
			if current == nil || current.journal != j {
				continue
			}
			end()
			if n.raft.State() == raft.Leader {
				current = n.begin(n.lease.now())
			}
		case <-n.closed:
			return
		}
	}
}

// begin waits until the store has everything that was committed before, and appends the entry that opens the epoch: from then
// on no entry of an engine before can be applied. Nothing is decided before the leases of leaders before are over. nil: the lead is lost
// already.
func (n *Node) begin(won leaseEnd) *Leadership {
	n.elections.Add(1)
	started := n.now()
	term := n.raft.CurrentTerm()
	for {
		j, at, err := n.openEpoch(term)
		switch {
		case err == nil:
			n.awaitLease(term, won)
			n.log.Info("this node leads", "term", term, "entries", at.Number, "took_ms", n.now().Sub(started).Milliseconds())
			return n.newLeadership(j)
		case errors.Is(err, store.ErrSequence): // one of the last leader came in between; it is the last, since that one has stopped
		case n.raft.State() == raft.Leader && n.raft.CurrentTerm() == term: // raft takes no entries while a transfer is tried
			n.sleep(beginAgain)
		default:
			n.log.Warn("the lead was lost before it began", "term", term, "error", err.Error())
			return nil
		}
	}
}

// beginAgain is how long a leader that cannot begin waits before it tries again.
const beginAgain = 20 * time.Millisecond

// openEpoch appends the first entry of a term after the last entry of the store, which is at the position that it returns.
func (n *Node) openEpoch(term uint64) (*journal, record.Position, error) {
	if err := n.raft.Barrier(0).Error(); err != nil {
		return nil, record.Position{}, err
	}
	at := n.store.Load().Position()
	j := &journal{raft: n.raft, epoch: term, chain: at.Chain, over: make(chan struct{})}
	j.format.Store(int32(n.firstFormat(at.Format))) //nolint:gosec // at most record.NewestFormat
	return j, at, j.Append(&record.Entry{
		Position: record.Position{Number: at.Number + 1, At: n.o.Clock.Now()}, Prev: at.Number, Batch: &record.CommitBatch{},
	})
}

// newLeadership gives the lead to whoever takes it from Leads.
func (n *Node) newLeadership(j *journal) *Leadership {
	select {
	case <-n.ended: // of a lead before
	default:
	}
	j.failed = n.ended
	l := &Leadership{n: n, journal: j, standby: n.takeStandby(), lost: make(chan struct{}), Term: j.epoch}
	select {
	case <-n.leads: // one that nobody has taken, and that has ended
	default:
	}
	n.journal.Store(j)
	n.leads <- l
	return l
}

// watchDisk flushes the store, cuts the log, and notices when a disk fails.
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
			n.flush()
			n.cutLog()
		}
	}
}

// flush makes the store durable if a crash would leave many entries to be applied again.
func (n *Node) flush() {
	if n.unflushed.Load() < n.o.flushEntries {
		return
	}
	n.unflushed.Store(0)
	if err := n.store.Load().Flush(); err != nil && !errors.Is(err, store.ErrClosed) { // replaced by a copy
		n.log.Warn("the store cannot be flushed", "error", err.Error())
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
