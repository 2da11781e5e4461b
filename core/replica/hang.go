package replica

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A disk may stop to answer without an error. raft's main loop waits for it then, but its heartbeats go on, so that the others would
// follow a leader that can do nothing. So a node whose log or store has been busy with one entry for hangFor ends its lead, if it has it,
// and raft's calls of the others; they elect another one, and this one follows once its disk answers. If it still does not after
// hangEnds, the node fails.
const (
	hangFor   = 2 * time.Second
	hangEnds  = 30 * time.Second
	hangEvery = 100 * time.Millisecond
)

// errHang is why a node whose disk hangs calls nobody.
var errHang = errors.New("the disk of this node does not answer")

// stopwatch says since when something is being done, one thing at a time.
type stopwatch struct{ since atomic.Int64 } // by the even clock, plus one; zero: nothing is done

func (w *stopwatch) start(at time.Duration) { w.since.Store(int64(at) + 1) }
func (w *stopwatch) stop()                  { w.since.Store(0) }

// took is how long it has been going on at a moment.
func (w *stopwatch) took(at time.Duration) time.Duration {
	since := w.since.Load()
	if since == 0 {
		return 0
	}
	return at + 1 - time.Duration(since)
}

// watchHang notices when the disk does not answer, and when it does again.
func (n *Node) watchHang() {
	tick := time.NewTicker(hangEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.closed:
			return
		case <-tick.C:
		}
		now := n.lease.now().even
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
			n.log.Error("the disk of this node does not answer, it does not lead until it does", "for_ms", took.Milliseconds())
		} else {
			n.log.Info("the disk of this node answers again")
		}
		select {
		case n.hangsChanged <- struct{}{}:
		default: // it is looked at soon
		}
	}
}
