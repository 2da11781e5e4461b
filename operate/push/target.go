package push

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"broker/core"
	"broker/core/client"
)

// Limits and times of a target.
const (
	leaseSlack  = 10 * time.Second // time of a lease beyond the timeout of its request
	leaseWait   = time.Minute      // maximum wait of one lease operation for a job
	refusedWait = time.Second      // pause after the broker has refused a lease
	maxBurst    = 100 * time.Millisecond
	maxBytes    = 32 << 20 // limit of the bodies leased at once

	firstRetry = time.Second // pause after the receiver could not be reached; doubles up to maxRetry
	maxRetry   = 30 * time.Second
	// longest pause that a receiver can request for the target; the job itself waits as requested
	maxPause = time.Minute
)

// target takes the jobs of one Target and starts their requests.
type target struct {
	Target
	p      *Pusher
	url    *url.URL
	http   *http.Client
	slots  chan struct{} // one value for each held job
	counts *counters     // set before start

	once sync.Once // of start
	end  context.CancelFunc
	done chan struct{} // closed when run has returned

	// Used by run alone.
	tokens   float64 // requests that the rate allows now
	filledAt core.Instant

	mu          sync.Mutex // guards the fields below
	pausedUntil core.Instant
	retry       time.Duration // pause before the next attempt to reach the receiver; zero: the last one succeeded
}

func newTarget(p *Pusher, o *Target) (*target, error) {
	t := &target{Target: *o, p: p, slots: make(chan struct{}, o.Concurrency), done: make(chan struct{}), tokens: 1}
	var err error
	if t.url, err = url.Parse(o.URL); err != nil {
		return nil, err
	}
	if t.http, err = newHTTP(t.url, o); err != nil {
		return nil, err
	}
	return t, nil
}

// start starts to take jobs. Further calls do nothing.
func (t *target) start() {
	t.once.Do(func() {
		var ctx context.Context
		ctx, t.end = context.WithCancel(context.Background())
		go t.run(ctx) // ends with stop, which waits for it
	})
}

// stop stops taking jobs. Started requests continue.
func (t *target) stop() {
	t.end()
	<-t.done
}

func (t *target) run(ctx context.Context) {
	defer close(t.done)
	c := openClient(t.p.o.Broker)
	defer c.Close()
	t.filledAt = t.p.o.Broker.Now()
	for ctx.Err() == nil {
		n := t.admitted(ctx)
		if n == 0 {
			return
		}
		jobs, err := t.lease(ctx, c, n)
		if err != nil {
			sleep(ctx, refusedWait)
		}
		if t.pause() > 0 { // another request has received a pause in the meantime
			c.Release(jobs)
			jobs = nil
		}
		t.tokens -= float64(len(jobs))
		for range n - len(jobs) {
			<-t.slots
		}
		for i := range jobs {
			t.p.running.Add(1)
			go t.deliver(&jobs[i]) // Close waits for it
		}
	}
}

// admitted waits until the target may take jobs, and reserves a slot for each. It returns zero if the context has
// ended.
func (t *target) admitted(ctx context.Context) (n int) {
	select {
	case t.slots <- struct{}{}:
		n++
	case <-ctx.Done():
		return 0
	}
	for wait := t.wait(); wait > 0; wait = t.wait() { // the previous job of the slot may have received a pause
		if !sleep(ctx, wait) {
			return 0
		}
	}
	limit := core.MaxLeases
	if t.Rate > 0 {
		limit = min(limit, int(t.tokens))
	}
	for n < limit {
		select {
		case t.slots <- struct{}{}:
			n++
		default:
			return n
		}
	}
	return n
}

// wait is the time until the receiver and the rate allow a job.
func (t *target) wait() time.Duration {
	wait := t.pause()
	if t.Rate == 0 {
		return wait
	}
	now := t.p.o.Broker.Now()
	passed := max(now.Sub(t.filledAt), 0) // the clock may be set back
	t.filledAt = now
	t.tokens = min(t.tokens+passed.Seconds()*t.Rate, max(1, t.Rate*maxBurst.Seconds()))
	if t.tokens < 1 {
		wait = max(wait, time.Duration((1-t.tokens)/t.Rate*float64(time.Second))+time.Microsecond)
	}
	return wait
}

// lease takes up to n jobs, and returns once the leases are durable. It returns none if there was no job in time or the
// context has ended.
func (t *target) lease(ctx context.Context, c *client.Client, n int) ([]core.Reply, error) {
	return lease(ctx, c, &core.Lease{
		Queues: t.Queues, Pick: core.PickInOrder, Holder: core.HeldByWorker, Worker: workerName(t.Name),
		LeaseFor: t.Timeout + leaseSlack,
		Deadline: t.p.o.Broker.Now().Add(leaseWait), Max: n, MaxBytes: maxBytes, KeepQueues: true,
	})
}

// pause is the time for which the receiver gets no job.
func (t *target) pause() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(max(t.pausedUntil.Sub(t.p.o.Broker.Now()), 0), maxPause) // the clock may be set back
}

// pauseFor stops taking jobs for a while.
func (t *target) pauseFor(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pausedUntil = max(t.pausedUntil, t.p.o.Broker.Now().Add(min(d, maxPause)))
}

// unreachable stops taking jobs until the receiver may be reachable again. Requests that fail together count once.
func (t *target) unreachable(err error) {
	now := t.p.o.Broker.Now()
	t.mu.Lock()
	first, again := t.retry == 0, t.pausedUntil <= now
	if first || again {
		t.retry = min(max(2*t.retry, firstRetry), maxRetry)
		t.pausedUntil = max(t.pausedUntil, now.Add(t.retry))
	}
	t.mu.Unlock()
	if first {
		t.p.o.Failed(t.Name, err)
	}
}

// reached records that the receiver has accepted a connection.
func (t *target) reached() {
	t.mu.Lock()
	was := t.retry
	t.retry = 0
	t.mu.Unlock()
	if was != 0 {
		t.p.o.Failed(t.Name, nil)
	}
}

// sleep returns false if the context has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
