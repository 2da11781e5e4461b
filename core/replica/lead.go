package replica

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/internal/record"
	"broker/core/internal/store"
)

// watchLead begins and ends Leaderships as raft wins and loses elections. If the journal fails while the node still
// leads, a new Leadership begins, because it is unknown whether the failed entry is committed.
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
			} else if current == nil &&
				n.raft.State() == raft.Leader { // the other members could not elect another leader
				current = n.begin(n.lease.now())
			}
		case j := <-n.ended: // for example after a transfer that did not succeed
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

// begin waits until the store has all entries committed earlier, and appends the entry that opens the epoch. From then
// on, no entry of an earlier engine can be applied. Then it waits until the leases of earlier leaders have ended. It
// returns nil if the node no longer leads.
func (n *Node) begin(won moment) *Leadership {
	n.elections.Add(1)
	started := n.now()
	term := n.raft.CurrentTerm()
	for {
		j, at, err := n.openEpoch(term)
		switch {
		case err == nil:
			n.awaitLease(term, won)
			n.log.Info("this node leads", "term", term, "entries", at.Number, "took_ms",
				n.now().Sub(started).Milliseconds())
			return n.newLeadership(j, at)
		case errors.Is(err, store.ErrSequence): // the previous leader appended an entry before, and has now stopped
		case n.raft.State() == raft.Leader && n.raft.CurrentTerm() == term: // raft accepts no entries during a transfer
			n.sleep(beginAgain)
		default:
			n.log.Warn("leadership was lost before it began", "term", term, "error", err.Error())
			return nil
		}
	}
}

// beginAgain is how long a leader that cannot begin waits before it tries again.
const beginAgain = 20 * time.Millisecond

// openEpoch appends the first entry of a term. It returns the position of the last entry of the store before.
func (n *Node) openEpoch(term uint64) (*journal, record.Position, error) {
	if err := n.raft.Barrier(0).Error(); err != nil {
		return nil, record.Position{}, err
	}
	at := n.store.Load().Position()
	now := n.resumeTime(at.At)
	j := &journal{raft: n.raft, epoch: term, chain: at.Chain, over: make(chan struct{})}
	j.format.Store(int32(n.firstFormat(at)))
	return j, at, j.Append(&record.Entry{
		Position: record.Position{Number: at.Number + 1, At: now}, Prev: at.Number, Batch: &record.CommitBatch{},
	})
}

// newLeadership starts a Leadership after the entry at a position, and passes it to the receiver of Leads.
func (n *Node) newLeadership(j *journal, at record.Position) *Leadership {
	select {
	case <-n.ended: // from an earlier Leadership
	default:
	}
	j.failed = n.ended
	l := &Leadership{
		n: n, journal: j, standby: n.takeStandby(), lost: make(chan struct{}), Term: j.epoch,
		Before: at.Number, LastTerm: at.Epoch,
	}
	select {
	case <-n.leads: // an ended Leadership that was never received
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
			failed = n.store.Load().Failed() // the store may have been replaced
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
	if err := n.store.Load().Flush(); err != nil && !errors.Is(err, store.ErrClosed) { // ErrClosed: replaced by a copy
		n.log.Warn("the store cannot be flushed", "error", err.Error())
	}
}

// keepLogBytes is the size up to which the log is kept for members that need it.
func (n *Node) keepLogBytes() uint64 {
	if n.o.KeepLogBytes > 0 {
		return n.o.KeepLogBytes
	}
	return max(minKeepLog, n.store.Load().Metrics().DiskBytes)
}

// removable returns the last entry up to which the beginning of the log, from first to high, may be removed.
func (n *Node) removable(first, high uint64) uint64 {
	if n.logs.log.Bytes() >= n.keepLogBytes() {
		return high
	}
	return n.neededFrom(first, high+1) - 1
}

// cutLog cuts the log if it is too large and no member needs it.
func (n *Node) cutLog() {
	size := n.logs.log.Bytes()
	first, last := n.logs.log.Bounds()
	if size < n.o.MaxLogBytes || first == 0 {
		return
	}
	if n.removable(first, last) <= first { // almost nothing may be cut
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
