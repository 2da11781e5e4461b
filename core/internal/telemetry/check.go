package telemetry

import (
	"fmt"
	"slices"

	"broker/core"
)

// Check verifies that every meter with unsaved data is listed exactly once, and that the queues have the right meters.
func (x *Meters) Check(queues []*Queue) (faults []string) {
	fail := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if len(x.list) != len(x.named) {
		fail("%d meters, %d by name", len(x.list), len(x.named))
	}
	for s := range core.Steps {
		want := 0
		for i := 0; x.meterAt(i) != nil; i++ {
			if mt := x.meterAt(i); mt.levels[s].dirty {
				want++
				if !slices.Contains(x.dirty[s], mt) {
					fail("the meter of %q has something to write and nobody knows", mt.name)
				}
			}
		}
		if want != len(x.dirty[s]) {
			fail("%d meters are known to have something to write, %d have", len(x.dirty[s]), want)
		}
	}
	for _, q := range queues {
		if mt := x.named[q.Name]; mt != q.meter && (mt != nil || q.meter != x.rest) {
			fail("queue %s is measured by the meter of %q", q.Name, q.meter.name)
		}
	}
	return faults
}

// Show shows the contents of the meters, for comparisons in tests. It is not a method, so that the linker leaves it out
// of the program.
func Show(x *Meters) (all []string) {
	for i := 0; x.meterAt(i) != nil; i++ {
		mt := x.meterAt(i)
		blocks := 0
		for l := range mt.levels {
			for _, b := range mt.levels[l].ring.blocks {
				if b != nil {
					blocks++
				}
			}
		}
		all = append(all, fmt.Sprint(x.metaKey(mt), mt.saved, blocks, mt.levels[core.Step2s].dirty))
	}
	slices.Sort(all)
	return all
}

// Names lists the queues with a meter, in the order in which they got it.
func (x *Meters) Names() []string {
	names := make([]string, len(x.list))
	for i, mt := range x.list {
		names[i] = mt.name
	}
	return names
}
