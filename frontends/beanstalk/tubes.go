package beanstalk

import (
	"sync"

	"broker/core"
)

// tube is what clients of this protocol do with a tube; the core knows the rest.
type tube struct {
	using, watching, waiting int
	deletes, pauses          uint64
	since                    core.Instant // QueueInfo.KnownSince of the counts
}

// tubes are those in use.
type tubes struct {
	mu     sync.Mutex // guards the fields below
	byName map[string]*tube
	most   int // tubes before the unused ones lose their counts; grows with those in use, so that looking for them stays rare
}

// change changes the counts of a tube.
func (x *tubes) change(name string, fn func(*tube)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.byName[name]
	if t == nil {
		if len(x.byName) > max(x.most, maxTubes) {
			x.dropUnused()
			x.most = 2 * len(x.byName)
		}
		t = &tube{}
		x.byName[name] = t
	}
	if fn(t); t.using == 0 && t.watching == 0 && t.waiting == 0 && t.deletes == 0 && t.pauses == 0 {
		delete(x.byName, name)
	}
}

// maxTubes is how many tubes have counts of their own before those that no connection uses lose them.
const maxTubes = 10_000

func (x *tubes) dropUnused() {
	for name, t := range x.byName {
		if t.using == 0 && t.watching == 0 && t.waiting == 0 {
			delete(x.byName, name)
		}
	}
}

// of returns the counts of a tube that is known since an instant. Those of a former tube of that name are gone.
func (x *tubes) of(name string, since core.Instant) (counts tube) {
	x.change(name, func(t *tube) {
		if t.since != since {
			if t.since != 0 {
				t.deletes, t.pauses = 0, 0
			}
			t.since = since
		}
		counts = *t
	})
	return counts
}

// forget drops the counts of a tube that does not exist.
func (x *tubes) forget(name string) {
	x.change(name, func(t *tube) { t.deletes, t.pauses, t.since = 0, 0, 0 })
}
