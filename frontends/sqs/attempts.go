package sqs

import (
	"sync"
	"time"

	"broker/core"
)

// If the reply to a receive on a FIFO queue is lost, the client repeats it with the same ReceiveRequestAttemptId and
// gets the same messages, as long as they are in flight. Attempts are in memory only. After a restart a repeated
// receive gets the messages only after their timeout.

const (
	attemptFor  = 5 * time.Minute
	maxAttempts = 10_000
)

type attemptKey struct{ queue, id string }

// attempt holds the messages that a receive has handed out.
type attempt struct {
	taken []core.Reply
	at    core.Instant
}

// attempts holds the last receives with an id. The zero value is ready to use.
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
	a.byKey[key] = attempt{bare(taken), now}
}

// bare are messages without their bodies.
func bare(taken []core.Reply) []core.Reply {
	kept := make([]core.Reply, len(taken))
	for i, r := range taken {
		kept[i] = core.Reply{Seq: r.Seq, Lease: r.Lease}
	}
	return kept
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

// expire removes old attempts and makes room for one.
func (a *attempts) expire(now core.Instant) {
	n := 0
	for n < len(a.order) && (len(a.order)-n >= maxAttempts || now.Sub(a.byKey[a.order[n]].at) >= attemptFor) {
		delete(a.byKey, a.order[n])
		n++
	}
	a.order = a.order[n:]
}

// repeat is the reply to a repeated receive: its messages that are still in flight, with a new visibility timeout; nil:
// none. The reply is valid once the commit is on disk.
func (l *leasing) repeat(taken []core.Reply) (out *receiveOutput, commit core.Commit) {
	for _, r := range taken {
		info, err := l.c.Ask(&core.Inspect{Tag: 1, Ref: core.Ref{Seq: r.Seq}})
		commit = max(commit, info.Commit)
		if err == nil && info.Info.State == core.Leased && info.Info.LeasedAt == r.Lease.LeasedAt &&
			info.Info.Job != nil {
			r.Job = info.Info.Job
			l.taken = append(l.taken, r)
		}
	}
	if len(l.taken) == 0 {
		return nil, 0
	}
	l.again = true
	l.hide()
	return l.view(), commit
}
