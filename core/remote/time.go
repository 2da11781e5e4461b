package remote

import (
	"sync"
	"time"

	"broker/core"
)

// leaderTime is the time of the leader's broker, learned from its answers to beats. The best of the last answers
// counts: the one that took the shortest time.
type leaderTime struct {
	mu     sync.Mutex // guards the fields below
	offset core.Instant
	trip   time.Duration // of the answer that offset is from
	age    int           // answers since then
	last   core.Instant  // the newest time that was told
}

// maxAge is after how many answers a new one counts, even if it took longer. Clocks drift.
const maxAge = 10

// learn takes an answer: sent and now are of this node's monotonic clock.
func (t *leaderTime) learn(sent, now time.Duration, at core.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	trip := now - sent
	if t.age++; t.offset != 0 && trip > t.trip && t.age < maxAge {
		return
	}
	t.offset, t.trip, t.age = at.Add(trip/2)-core.Instant(0).Add(now), trip, 0
}

// at is the leader's time at a moment of this node's monotonic clock. It never goes back.
func (t *leaderTime) at(now time.Duration) core.Instant {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, t.offset+core.Instant(0).Add(now))
	return t.last
}
