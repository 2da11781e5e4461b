package machine

// eachSchedule checks the index and the deadline of every schedule.
func (c *checker) eachSchedule() {
	all := &c.m.schedules
	found := 0
	for slot, s := range all.slots {
		if s == nil {
			continue
		}
		found++
		c.timer(s.deadline != 0)
		if all.byName[s.Name] != s || int(s.slot) != slot {
			c.fail("schedule %q is not found by its name or slot", s.Name)
		}
		if (s.deadline != 0) != (s.next != 0 && !s.Paused && !s.unconfirmed && s.unusable == nil) && c.m.stopped == nil {
			c.fail("schedule %q is due at %d, paused %v, and has a deadline: %v", s.Name, s.next, s.Paused, s.deadline != 0)
		}
	}
	if found != len(all.byName) || found+len(all.free) != len(all.slots) {
		c.fail("%d schedules, %d names, %d slots of which %d are free", found, len(all.byName), len(all.slots), len(all.free))
	}
}
