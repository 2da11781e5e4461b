package sqs

import (
	"sync"
	"time"

	"broker/core"
)

// A receive on a FIFO queue whose reply was lost is repeated with its ReceiveRequestAttemptId: it gets the same messages, as long as
// they are in flight. What is known of attempts is in memory only; after a restart a repeated receive waits for the timeout.

const (
	attemptFor  = 5 * time.Minute
	maxAttempts = 10_000
)

type attemptKey struct{ queue, id string }

// attempt is what a receive has handed out.
type attempt struct {
	taken []core.Reply
	at    core.Instant
}

// attempts are the last receives with an id. The zero value is ready.
type attempts struct {
	mu    sync.Mutex // guards the fields below
	byKey map[attemptKey]attempt
	order []attemptKey // oldest first
}

func (a *attempts) remember(queue, id string, taken []core.Reply, now core.Instant) {
	if id == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(now)
	if a.byKey == nil {
		a.byKey = make(map[attemptKey]attempt)
	}
	key := attemptKey{queue, id}
	if _, known := a.byKey[key]; !known {
		a.order = append(a.order, key)
	}
	kept := make([]core.Reply, len(taken))
	for i, r := range taken {
		kept[i] = core.Reply{Seq: r.Seq, Lease: r.Lease} // not the bodies
	}
	a.byKey[key] = attempt{kept, now}
}

func (a *attempts) find(queue, id string, now core.Instant) ([]core.Reply, bool) {
	if id == "" {
		return nil, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(now)
	found, ok := a.byKey[attemptKey{queue, id}]
	return found.taken, ok
}

// expire forgets what is too old, and makes room for one.
func (a *attempts) expire(now core.Instant) {
	n := 0
	for n < len(a.order) && (len(a.order)-n >= maxAttempts || now.Sub(a.byKey[a.order[n]].at) >= attemptFor) {
		delete(a.byKey, a.order[n])
		n++
	}
	a.order = a.order[n:]
}

// repeat is the reply to a repeated receive: the messages that are still in flight by it, invisible anew; nil: none are.
func (l *leasing) repeat(taken []core.Reply) *receiveOutput {
	for _, r := range taken {
		info, err := l.c.one(&core.Inspect{Tag: 1, Ref: core.Ref{Seq: r.Seq}})
		if err == nil && info.Info.State == core.Leased && info.Info.LeasedAt == r.Lease.LeasedAt && info.Info.Job != nil {
			r.Job = info.Info.Job
			l.taken = append(l.taken, r)
		}
	}
	if len(l.taken) == 0 {
		return nil
	}
	l.hide()
	return l.view()
}
