package replica

import (
	"sync"
	"time"
)

// A disk may become slow without hanging. A client then waits for the leader's disk, though a majority of the members
// would have its change on disk sooner. A leader hands over when the writes of its log have taken much longer than
// those of one member, in each of many checks in a row. A busy machine slows writes down too, and with the lead the
// work moves to the other member, so the writes must be much too slow for any disk, and a new leader keeps the lead for
// a while.
const (
	slowWrite  = 50 * time.Millisecond // a leader whose writes take less on average is not slow
	slowTimes  = 5                     // how many times longer than those of the other member they take
	slowChecks = 30                    // in a row, one in each second in which both have written
	leadChecks = 300                   // of a new leader, before it hands over
	checkEvery = time.Second
)

// pace is how often the writes are checked, and how many checks it takes until a leader hands over.
type pace struct {
	every                  time.Duration
	slowChecks, leadChecks int
}

// writeMeter measures the writes of the log between two checks.
type writeMeter struct {
	mu     sync.Mutex // guards the fields below
	writes int
	total  time.Duration
}

func (m *writeMeter) add(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	m.total += took
}

// take returns the average time of a write since the last call; zero: there was none.
func (m *writeMeter) take() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	writes, total := m.writes, m.total
	m.writes, m.total = 0, 0
	if writes == 0 {
		return 0
	}
	return total / time.Duration(writes)
}

// slowness counts the checks of a leader. It is used by the goroutine of watchMembers.
type slowness struct {
	led   int            // checks since the node leads
	worse map[string]int // checks in a row in which the writes of this node were much slower, by member
}

// follow forgets everything, because the node does not lead.
func (s *slowness) follow() { *s = slowness{} }

// check compares the average time of this node's writes with those of the other members, and returns the members to
// which it should hand over.
func (s *slowness) check(p pace, own time.Duration, others map[string]time.Duration) map[string]bool {
	if s.led++; own <= 0 {
		return nil // nothing was written: this says nothing about the disk
	}
	before, better := s.worse, make(map[string]bool)
	s.worse = make(map[string]int)
	for id, other := range others {
		switch {
		case own < slowWrite, own < slowTimes*other:
			continue
		case other <= 0:
			s.worse[id] = before[id]
			continue
		}
		s.worse[id] = before[id] + 1
		if s.worse[id] >= p.slowChecks && s.led >= p.leadChecks {
			better[id] = true
		}
	}
	return better
}

// turn counts the checks in a row in which the disk was slow while it counts as fast, or the other way round. It is
// used by the goroutine of watchMembers.
type turn int

// check reports whether a disk counts as slow after a check with this average time of a write.
func (t *turn) check(was bool, own time.Duration) bool {
	switch {
	case own <= 0:
		return was // nothing was written: this says nothing about the disk
	case own >= slowWrite == was:
		*t = 0
		return was
	}
	if *t++; *t < slowChecks {
		return was
	}
	*t = 0
	return !was
}

// checkWrites measures this node's writes once a second, and logs when its disk becomes slow or fast again.
func (n *Node) checkWrites() {
	own := max(n.logs.meter.take(), n.logs.writing.took(n.lease.now().monotonic))
	n.writeTime.Store(int64(own))
	slow := n.slowTurn.check(n.diskSlow.Load(), own)
	if n.diskSlow.Swap(slow) == slow {
		return
	}
	if slow {
		n.log.Warn("the disk of this node is slow", "write_ms", own.Milliseconds())
	} else {
		n.log.Info("the disk of this node is fast again", "write_ms", own.Milliseconds())
	}
}

const handsOverSlow = "handing the lead over, since the disk of this node is slow"

// transferIfDiskSlow transfers leadership to a member whose disk is much faster.
func (n *Node) transferIfDiskSlow(all map[string]*Status) {
	others := make(map[string]time.Duration)
	for id, s := range all {
		if id != n.o.ID {
			others[id] = s.WriteTime
		}
	}
	own := time.Duration(n.writeTime.Load())
	better := n.slowness.check(n.o.checks, own, others)
	if len(better) == 0 {
		return
	}
	n.transferTo(all, handsOverSlow, func(s *Status) bool { return better[s.Node] })
}
