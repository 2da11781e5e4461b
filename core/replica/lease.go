package replica

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"broker/core"
	"broker/core/clock"
)

// During the leader's lease, no other member can lead, so the leader need not ask the other members before each reply.
//
//	leader     sent ───────────── leaseFor ──────────────▶ the lease ends
//	follower     └▶ answers        votes for another ──▶ won ─────── waitFor ───────▶ the next leader begins
//
// A member that votes in a newer term no longer answers heartbeats of older terms, and any two majorities have a member
// in common. So heartbeats that a majority has answered were sent before the next leader won. The next leader decides
// nothing until the lease of such a heartbeat must have ended. Votes, restarts, transfers and clock changes do not
// matter. Only the speed of clocks does: the next leader's clock may be faster by an eighth. The lease does not depend
// on a setting, because settings of nodes may differ. If answers take longer than the lease, every reply waits for a
// commit instead.
const (
	leaseFor = 150 * time.Millisecond
	waitFor  = leaseFor + leaseFor/8
)

// leaseFormat is the first format of entries with which all members wait as described above.
const leaseFormat = 3

// lease is the lease of a node while it leads. Any goroutine may use it.
type lease struct {
	clock clock.Monotonic
	until atomic.Pointer[leaseEnd]

	mu       sync.Mutex // guards the fields below
	term     uint64
	answered map[raft.ServerID]moment // by member: when its last answered heartbeat was sent
	givenUp  uint64                   // term whose lease was given up
}

// moment is a point in time by both clocks. The monotonic clock stops while the machine sleeps.
type moment struct {
	monotonic time.Duration
	wall      core.Instant
}

// leaseEnd is when the lease of a term ends.
type leaseEnd struct {
	moment

	term uint64
}

// now returns the current time by both clocks.
func (l *lease) now() moment {
	wall, monotonic := l.clock.Read()
	return moment{monotonic, wall}
}

// holds reports that no other member can lead now if this node leads in the given term.
func (l *lease) holds(term uint64) bool {
	end := l.until.Load()
	if end == nil || end.term != term {
		return false
	}
	now := l.now()
	return now.monotonic < end.monotonic && now.wall < end.wall
}

// renew extends the lease: a member has answered a heartbeat of the given term, which was sent at sent.
func (l *lease) renew(term uint64, id raft.ServerID, sent moment, servers []raft.Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if term < l.term || term == l.givenUp {
		return
	}
	if term > l.term {
		l.term, l.answered = term, make(map[raft.ServerID]moment)
	}
	if sent.monotonic > l.answered[id].monotonic {
		l.answered[id] = sent
	}
	voters := 0
	var answered []moment
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if at, ok := l.answered[s.ID]; ok {
			answered = append(answered, at)
		}
	}
	others := voters / 2 // together with the leader, they are a majority
	if others == 0 || len(answered) < others {
		return
	}
	slices.SortFunc(answered, func(a, b moment) int { return cmp.Compare(b.monotonic, a.monotonic) })
	start := answered[others-1]
	l.until.Store(&leaseEnd{moment{start.monotonic + leaseFor, start.wall.Add(leaseFor)}, term})
}

// giveUp ends the lease of a term for good.
func (l *lease) giveUp(term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.givenUp = term
	l.until.Store(nil)
}

// holds reports that no other member can lead now. It is false until an entry of leaseFormat is committed, because
// until then a member may run an older program that does not wait.
func (l *Leadership) holds() bool {
	j := l.journal
	return !j.ended.Load() && j.committedFormat.Load() >= leaseFormat && l.n.lease.holds(j.epoch)
}

// awaitLease waits until the leases of all earlier leaders have ended. won is when this leader has won its election.
func (n *Node) awaitLease(term uint64, won moment) {
	if n.yielded.Load() == term-1 {
		return // the previous leader has given up its lease, and had waited for all earlier leases
	}
	if rest := waitFor - (n.lease.now().monotonic - won.monotonic); rest > 0 {
		n.sleep(rest)
	}
}

// yield gives up the lease of this node for the rest of its term, and informs the member that is to lead next. Without
// that information, the next leader waits.
func (n *Node) yield(ctx context.Context, to Member) {
	j := n.journal.Load()
	if j == nil || j.ended.Load() {
		return
	}
	n.lease.giveUp(j.epoch)
	if _, err := n.call(ctx, to, &request{Op: opYield, Term: j.epoch}, yieldWithin); err != nil {
		n.log.Warn("the next leader could not be informed that it need not wait", "node", to.ID, "error", err.Error())
	}
}

// yieldWithin limits how long a leader tries to inform the next leader that it has given up its lease.
const yieldWithin = 200 * time.Millisecond
