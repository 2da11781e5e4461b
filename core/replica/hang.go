package replica

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A disk may hang: it stops answering without an error. raft's main loop then waits for the disk, but its heartbeats go
// on, so the other nodes would follow a leader that cannot do anything. When the log or the store of a node has been
// busy with one entry for hangFor, the node stops leading and ends raft's calls to other members. They elect another
// leader, and this node follows it once its disk answers. If the disk still does not answer after hangEnds, the node
// fails.
const (
	hangFor   = 2 * time.Second
	hangEnds  = 30 * time.Second
	hangEvery = 100 * time.Millisecond
)

// errHang is returned for outgoing calls while this node's disk hangs.
var errHang = errors.New("the disk of this node does not answer")

// stopwatch measures how long the current write takes; there is one write at a time.
type stopwatch struct{ since atomic.Int64 } // by the monotonic clock, plus one; zero: no write

func (w *stopwatch) start(at time.Duration) { w.since.Store(int64(at) + 1) }
func (w *stopwatch) stop()                  { w.since.Store(0) }

// took is how long the current write has taken at a given time.
func (w *stopwatch) took(at time.Duration) time.Duration {
	since := w.since.Load()
	if since == 0 {
		return 0
	}
	return at + 1 - time.Duration(since)
}

// watchHang notices when the disk hangs, and when it answers again.
func (n *Node) watchHang() {
	tick := time.NewTicker(hangEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.closed:
			return
		case <-tick.C:
		}
		now := n.lease.now().monotonic
		took := max(n.logs.writing.took(now), n.fsm.applying.took(now))
		if took >= hangEnds {
			n.fail(fmt.Errorf("%w for %v", errHang, took.Round(time.Second)))
			return
		}
		hangs := took >= n.o.hangFor
		if hangs == n.hangs.Load() {
			continue
		}
		n.hangs.Store(hangs)
		if hangs {
			n.stream.closeAll(n.stream.open)
			n.log.Error("the disk of this node does not answer; the node does not lead until it does", "for_ms",
				took.Milliseconds())
		} else {
			n.log.Info("the disk of this node answers again")
		}
		select {
		case n.hangsChanged <- struct{}{}:
		default: // a signal is already waiting
		}
	}
}
