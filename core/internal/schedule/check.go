package schedule

import (
	"slices"

	"broker/core"
)

// Check verifies the index and the deadline of every schedule, and returns the number of deadlines in use. If the
// machine has stopped, a schedule that became due since then may have no deadline.
func (x *Schedules) Check(fail func(format string, args ...any), stopped bool) (timers int) {
	for s := range x.slots.All() {
		if s.deadline != 0 {
			timers++
		}
		if x.byName[s.Name] != s || x.slots.At(s.slot) != s {
			fail("schedule %q is not found by its name or slot", s.Name)
		}
		for i := range s.Recent {
			if r := &s.Recent[i]; r.Seq != 0 && r.End == 0 && !slices.Contains(x.running[r.Seq], s) {
				fail("the end of run %d of schedule %q would not be noted", i, s.Name)
			}
		}
		if (s.deadline != 0) != (s.next != 0 && !s.Paused && !s.unconfirmed && s.unusable == nil) && !stopped {
			fail("schedule %q is due at %d, paused %v, and has a deadline: %v", s.Name, s.next, s.Paused,
				s.deadline != 0)
		}
	}
	for seq, of := range x.running {
		for _, s := range of {
			if x.byName[s.Name] != s ||
				!slices.ContainsFunc(s.Recent, func(r core.RecentRun) bool { return r.Seq == seq }) {
				fail("the end of job %d is noted for schedule %q, which does not know it", seq, s.Name)
			}
		}
	}
	if found := x.slots.Len(); found != len(x.byName) {
		fail("%d schedules, %d names", found, len(x.byName))
	}
	return timers
}
