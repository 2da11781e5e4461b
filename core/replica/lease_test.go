package replica

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"broker/core"
)

// handClock is a clock that a test sets.
type handClock struct {
	monotonic time.Duration
	wall      core.Instant
}

func (c *handClock) Now() core.Instant                   { return c.wall }
func (c *handClock) Read() (core.Instant, time.Duration) { return c.wall, c.monotonic }

func (c *handClock) pass(d time.Duration) { c.monotonic, c.wall = c.monotonic+d, c.wall.Add(d) }

// voters are members with a vote, and one without.
func voters(ids ...raft.ServerID) []raft.Server {
	all := []raft.Server{{ID: "learner", Suffrage: raft.Nonvoter}}
	for _, id := range ids {
		all = append(all, raft.Server{ID: id, Suffrage: raft.Voter})
	}
	return all
}

func TestLeaseStartsWhenAMajorityWasAsked(t *testing.T) {
	t.Parallel()
	three, five := voters("n1", "n2", "n3"), voters("n1", "n2", "n3", "n4", "n5")
	c := &handClock{monotonic: time.Hour, wall: 1 << 40}
	l := &lease{clock: c}
	want := func(holds bool, term uint64, when string) {
		t.Helper()
		if l.holds(term) != holds {
			t.Errorf("%s: %v", when, !holds)
		}
	}
	want(false, 7, "nobody has answered")
	sent := l.now()
	l.renew(7, "learner", sent, three)
	want(false, 7, "a member without a vote has answered")
	c.pass(100 * time.Millisecond) // until the answer arrives
	l.renew(7, "n2", sent, three)
	want(true, 7, "one of two others has answered")
	want(false, 8, "another term")
	c.pass(leaseFor - 100*time.Millisecond - time.Microsecond)
	want(true, 7, "just before the end")
	c.pass(time.Microsecond)
	want(false, 7, "at the end, which counts from when it was sent")

	first := l.now()
	l.renew(7, "n2", first, five)
	want(false, 7, "one of four others has answered")
	c.pass(time.Millisecond)
	l.renew(7, "n3", l.now(), five)
	c.pass(leaseFor - time.Millisecond)
	want(false, 7, "the older of two answers counts")

	l.renew(7, "n2", l.now(), three)
	c.wall = c.wall.Add(time.Second)
	want(false, 7, "the machine has slept")
	c.wall = c.wall.Add(-time.Second)
	l.renew(6, "n3", l.now(), three)
	want(true, 7, "an answer of an older term")
	l.giveUp(7)
	l.renew(7, "n2", l.now(), three)
	want(false, 7, "given up")
	l.renew(8, "n2", l.now(), three)
	want(true, 8, "the next term")
}

// A leader that transfers leadership gives up its lease first, so the next leader does not wait for it. A leader that
// died has not given it up, so the next leader waits.
func TestNextLeaderWaitsUnlessTheLeaseWasGivenUp(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, l, e := c.leader()
	from := 0
	eventually(t, func() string {
		submit(t, e, from, 1, 10)
		if from++; l.holds() {
			return ""
		}
		return "the leader has no lease"
	})
	c.caughtUp()
	term := l.Term
	second, e2 := c.next(n, e, c.follower(n))
	if l.holds() {
		t.Error("a leader that was replaced has a lease")
	}
	if got := second.yielded.Load(); got < term {
		t.Errorf("the next leader was told of term %d, not of %d", got, term)
	}
	began := second.lease.now()
	second.awaitLease(second.yielded.Load()+1, began)
	if waited := second.lease.now().monotonic - began.monotonic; waited > waitFor/2 {
		t.Errorf("waited %v for a lease that was given up", waited)
	}
	began = second.lease.now()
	second.awaitLease(second.yielded.Load()+2, began)
	if waited := second.lease.now().monotonic - began.monotonic; waited < waitFor {
		t.Errorf("waited %v for a lease of %v", waited, leaseFor)
	}
	shutdown(t, e2)
}
