package replica

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"broker/core/clock"
)

// A follower gets a copy while clients write more than the log holds. One copy is enough if the log is kept for it;
// beyond the limit of the log, the follower needs another one.
func TestOneCopyIsEnoughWhileClientsWrite(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]uint64{"kept": 0, "beyond the limit": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, "n1", "n2", "n3")
			var counting atomic.Bool
			var copies atomic.Int32
			begun, written := make(chan struct{}), make(chan struct{})
			c.change = func(o *Options) {
				o.MaxLogBytes, o.KeepLogBytes = 1<<20, keep
				o.beforeCopy = func() {
					if counting.Load() && copies.Add(1) == 1 {
						close(begun)
						<-written
					}
				}
			}
			c.start("n1", "n2", "n3")
			leader, _, e := c.leader()
			defer shutdown(t, e)
			c.caughtUp()
			victim := c.follower(leader)
			c.stop(victim)
			from := 0
			write := func() {
				submit(t, e, from, 10, 10_000)
				from += 10
			}
			for ; from < 300; write() {
			}
			eventually(t, func() string {
				if low, _ := leader.logs.log.Bounds(); low > 20 {
					return ""
				}
				return "the log is not cut"
			})
			before := leader.copiesSent()[victim]
			counting.Store(true)
			c.start(victim)
			<-begun
			last := leader.raft.LastIndex()
			for end := time.After(5 * time.Second / 2); ; write() { // the log is checked once a second
				select {
				case <-end:
				default:
					continue
				}
				break
			}
			for low := uint64(0); keep == 1 && low <= last; low, _ = leader.logs.log.Bounds() {
				write()
			}
			close(written)
			c.caughtUp()
			if again := copies.Load() > 1; again != (keep == 1) {
				t.Errorf("%d copies", copies.Load())
			}
			for _, i := range leader.Overview(t.Context()).Nodes {
				if want := before + int(copies.Load()); i.ID == victim && i.Copies != want {
					t.Errorf("node %s is shown with %d copies, it got %d", i.ID, i.Copies, want)
				}
			}
		})
	}
}

// The log is kept for members that answer and that it can serve, and for copies until their receiver has reported.
func TestLogIsKeptForMembersThatNeedIt(t *testing.T) {
	t.Parallel()
	n := &Node{o: Options{Clock: clock.System{}}, peers: map[string]*peerStatus{}}
	n.lease.clock = n.o.Clock
	now := n.now()
	check := func(want uint64) {
		t.Helper()
		if got := n.neededFrom(100, 900); got != want {
			t.Errorf("needed from %d, not %d", got, want)
		}
	}
	check(900)
	n.peers["n2"] = &peerStatus{status: Status{Last: 500}, at: now}
	check(500)
	n.peers["n3"] = &peerStatus{status: Status{Last: 99}, at: now} // it needs a copy
	n.peers["n4"] = &peerStatus{status: Status{Last: 300}, at: now.Add(-time.Minute)}
	n.peers["n5"] = &peerStatus{status: Status{Last: 300}, at: now, failed: silentAfter}
	n.peers["n6"] = &peerStatus{status: Status{}}
	check(500)
	at := moment{}
	h := n.retain.hold(200, func() moment { return at })
	h.ReadCloser = io.NopCloser(strings.NewReader(""))
	check(200)
	at = n.lease.now()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	check(200)
	if low := n.retain.floor(500, at.monotonic+currentFor); low != 500 {
		t.Errorf("the log is kept from %d for a copy that is installed", low)
	}
}
