package beanstalk

import (
	"sync"

	"broker/core"
)

// tube holds the counts of this protocol's clients for a tube. The core has all other data.
type tube struct {
	using, watching, waiting int
	deletes, pauses          uint64
	since                    core.Instant // QueueInfo.KnownSince of the counted queue
}

// tubes holds the tubes in use.
type tubes struct {
	mu     sync.Mutex // guards the fields below
	byName map[string]*tube
	most   int // number of tubes above which unused ones are dropped; grows with the used tubes, so that the search stays rare
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

// maxTubes is the initial number of tubes above which unused tubes lose their counts.
const maxTubes = 10_000

func (x *tubes) dropUnused() {
	for name, t := range x.byName {
		if t.using == 0 && t.watching == 0 && t.waiting == 0 {
			delete(x.byName, name)
		}
	}
}

// of returns the counts of a tube that exists since an instant. It drops counts of an earlier tube with the same name.
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
