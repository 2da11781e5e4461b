package eventloop

import (
	"time"

	"broker/core"
)

// waker is a broker that knows the newest commit whose wake-ups have all been called.
type waker interface{ Woken() core.Commit }

// wakeWithin is the time after which the wake-ups of a commit count as called if the broker is not a waker: those of a
// leader that does not run for a while are still on their way.
const wakeWithin = 20 * time.Second

// wakes knows for which commits a reply that is still held has missed its wake-up.
type wakes struct {
	sure, seen core.Commit
	seenAt     time.Time
}

// done is the newest commit whose wake-ups have been called. Call it at each tick.
func (w *wakes) done(b core.Broker, now time.Time) core.Commit {
	if is, ok := b.(waker); ok {
		return is.Woken()
	}
	if now.Sub(w.seenAt) >= wakeWithin {
		w.sure, w.seen, w.seenAt = w.seen, b.Committed(), now
	}
	return w.sure
}
