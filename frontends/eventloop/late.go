package eventloop

import "broker/core"

// waker is a broker that knows the newest commit whose wake-ups have all been called.
type waker interface{ Woken() core.Commit }

// missed says which replies that are still held have missed their wake-up.
type missed struct {
	commit core.Commit // those up to it
	sure   bool        // false: it may be on its way, from a leader that does not run for a while
}

// late finds out what is missed. Call it at each tick. A broker that is no waker has called the wake-ups of a commit
// by the next tick, as far as one can know.
func (m *missed) late(b core.Broker) (now missed) {
	if w, is := b.(waker); is {
		return missed{w.Woken(), true}
	}
	now = *m
	m.commit = b.Committed()
	return now
}
