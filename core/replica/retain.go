package replica

import (
	"io"
	"sync"
	"time"
)

// A follower continues with the log after the index of the copy that it got. If the log were cut meanwhile, the copy
// would have been in vain, and the next one too if clients write faster than a copy is sent. So the log is not cut
// beyond the index of a copy in flight, nor beyond the last entry of a member that answers, as long as it is smaller
// than Options.KeepLogBytes. These entries themselves are kept too, because raft compares the entry before those that
// it sends.

// retention has the copies whose receivers still need the log after them. Any goroutine may use it.
type retention struct {
	mu     sync.Mutex // guards copies
	copies map[*heldCopy]struct{}
}

// heldCopy is a copy of the store that is read for a member.
type heldCopy struct {
	io.ReadCloser

	of    *retention
	now   func() moment
	index uint64        // the receiver needs the log from it on
	until time.Duration // by the monotonic clock; zero: it is still being sent or installed
}

// hold keeps the log from an index on until the copy is closed, which is after its receiver has installed it, and then
// until the receiver has reported its new end of the log.
func (r *retention) hold(index uint64, now func() moment) *heldCopy {
	h := &heldCopy{of: r, now: now, index: index}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.copies == nil {
		r.copies = make(map[*heldCopy]struct{})
	}
	r.copies[h] = struct{}{}
	return h
}

// Close implements io.Closer.
func (h *heldCopy) Close() error {
	h.end()
	return h.ReadCloser.Close()
}

// end keeps the log until the receiver has reported.
func (h *heldCopy) end() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.until = h.now().monotonic + currentFor
}

// floor returns the lowest index from which a copy's receiver needs the log; without a copy, it returns high.
func (r *retention) floor(high uint64, now time.Duration) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := range r.copies {
		if h.until != 0 && now >= h.until {
			delete(r.copies, h)
			continue
		}
		high = min(high, h.index)
	}
	return high
}

// neededFrom returns the index from which members need the log, whose first entry is first; none: high. A member whose
// last entry is before first needs a copy, which the log cannot replace.
func (n *Node) neededFrom(first, high uint64) uint64 {
	low := n.retain.floor(high, n.lease.now().monotonic)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range n.peers {
		if k.failed < silentAfter && !k.at.IsZero() && n.now().Sub(k.at) < currentFor && k.status.Last >= first {
			low = min(low, k.status.Last)
		}
	}
	return low
}
