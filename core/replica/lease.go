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

// The leader's lease says until when no other member can lead, so that a leader need not ask the others before each reply.
//
//	leader     sent ───────────── leaseFor ──────────────▶ the lease ends
//	follower     └▶ answers        votes for another ──▶ won ─────── waitFor ───────▶ the next leader begins
//
// A member that votes in a newer term answers no heartbeat of an older one any more, and any two majorities have a member in common.
// So heartbeats that a majority has answered were sent before the next leader won, and that one waits until the lease of such
// a heartbeat must be over before it decides anything. Votes, restarts, hand-overs and clocks that are set change nothing about that;
// all that counts is how fast clocks run: that of the next leader may be faster by an eighth. The lease does not depend on a setting,
// since settings of nodes may differ. Where an answer takes longer than the lease, every reply waits for a commit instead.
const (
	leaseFor = 150 * time.Millisecond
	waitFor  = leaseFor + leaseFor/8
)

// leaseFormat is the format of entries from which on all members wait as said above.
const leaseFormat = 3

// lease is the lease of a node while it leads. Any goroutine.
type lease struct {
	clock clock.Monotonic
	until atomic.Pointer[leaseEnd]

	mu       sync.Mutex // guards the fields below
	term     uint64
	answered map[raft.ServerID]leaseEnd // by when the newest heartbeat was sent that the member has answered
	givenUp  uint64                     // term in which there is no lease any more
}

// leaseEnd is a moment by both clocks: the even one stands still while a machine sleeps.
type leaseEnd struct {
	term uint64
	even time.Duration
	wall core.Instant
}

// now is the present moment.
func (l *lease) now() leaseEnd {
	wall, even := l.clock.Read()
	return leaseEnd{even: even, wall: wall}
}

// holds reports that no other member can lead at this moment if this node leads in a term.
func (l *lease) holds(term uint64) bool {
	end := l.until.Load()
	if end == nil || end.term != term {
		return false
	}
	now := l.now()
	return now.even < end.even && now.wall < end.wall
}

// heard notes that a member has answered a heartbeat of a term that was sent at some moment.
func (l *lease) heard(term uint64, id raft.ServerID, sent leaseEnd, servers []raft.Server) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if term < l.term || term == l.givenUp {
		return
	}
	if term > l.term {
		l.term, l.answered = term, make(map[raft.ServerID]leaseEnd)
	}
	if sent.even > l.answered[id].even {
		l.answered[id] = sent
	}
	voters := 0
	var answered []leaseEnd
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if at, ok := l.answered[s.ID]; ok {
			answered = append(answered, at)
		}
	}
	others := voters / 2 // that are a majority together with the leader
	if others == 0 || len(answered) < others {
		return
	}
	slices.SortFunc(answered, func(a, b leaseEnd) int { return cmp.Compare(b.even, a.even) })
	end := answered[others-1]
	end.term, end.even, end.wall = term, end.even+leaseFor, end.wall.Add(leaseFor)
	l.until.Store(&end)
}

// giveUp ends the lease of a term for good.
func (l *lease) giveUp(term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.givenUp = term
	l.until.Store(nil)
}

// holds reports that no other member can lead at this moment. Until an entry of leaseFormat is committed, a member may run a
// program that does not wait.
func (l *Leadership) holds() bool {
	j := l.journal
	return !j.ended.Load() && j.committedFormat.Load() >= leaseFormat && l.n.lease.holds(j.epoch)
}

// awaitLease waits until no leader before the present one, which has won its election at some moment, has a lease.
func (n *Node) awaitLease(term uint64, won leaseEnd) {
	if n.yielded.Load() == term-1 {
		return // that leader has given its lease up, and had awaited those before its own
	}
	if rest := waitFor - (n.lease.now().even - won.even); rest > 0 {
		n.sleep(rest)
	}
}

// yield gives the lease of this node up for the rest of its term, and says so to the member that is to lead next. If that does not
// learn of it, it waits.
func (n *Node) yield(ctx context.Context, to Member) {
	j := n.journal.Load()
	if j == nil || j.ended.Load() {
		return
	}
	n.lease.giveUp(j.epoch)
	if _, err := n.call(ctx, to, &request{Op: opYield, Term: j.epoch}, yieldWithin); err != nil {
		n.log.Warn("the next leader does not know that it need not wait", "node", to.ID, "error", err.Error())
	}
}

// yieldWithin bounds how long a leader tries to tell the next one that it has given its lease up.
const yieldWithin = 200 * time.Millisecond
