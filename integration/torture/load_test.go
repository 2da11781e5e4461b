package torture_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	faktory "github.com/contribsys/faktory/client"
	"github.com/google/uuid"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// The queues: workers serve the first one; jobs in the second one wait; jobs in the third one are not due.
const (
	worked  = "torture-worked"
	waiting = "torture-waiting"
	later   = "torture-later"
)

// queueOf distributes jobs over the first two.
func queueOf(n int) string {
	if n%2 == 0 {
		return worked
	}
	return waiting
}

// Every client runs until its connection breaks. The ledger knows what it was doing then, because each step is recorded
// before it is taken.

func submitGearman(b *harness.Broker, k *ledger, tag string) {
	c, err := gearmanclient.Dial(b.Gearman)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // it is broken
	const burst = 8
	for n := 0; ; n += burst {
		var packets []byte
		var sent []*record
		for i := n; i < n+burst; i++ {
			r := k.submitting(fmt.Sprintf("%s-%d", tag, i), "")
			sent = append(sent, r)
			packets = gearmanclient.Append(packets, gearmanclient.SubmitJobBg, queueOf(i), "", r.body)
		}
		if c.Write(packets) != nil {
			return
		}
		for _, r := range sent {
			p, err := c.Expect(gearmanclient.JobCreated, harness.Patience)
			if err != nil {
				return
			}
			k.acked(r, string(p.Data))
		}
	}
}

func submitFaktory(b *harness.Broker, k *ledger, tag string) {
	c, err := harness.OpenFaktory(b, harness.Patience)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // it is broken
	for n := 0; ; n++ {
		r := k.submitting(fmt.Sprintf("%s-%d", tag, n), uuid.NewString())
		job := faktory.NewJob(queueOf(n), r.body)
		job.Queue, job.Jid = queueOf(n), r.id
		if c.Push(job) != nil {
			return
		}
		k.acked(r, "")
	}
}

// submitWorkq also schedules and removes some jobs.
func submitWorkq(b *harness.Broker, k *ledger, tag string) {
	c, err := workqclient.Dial(b.Workq)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // it is broken
	for n := 0; ; n++ {
		r := k.submitting(fmt.Sprintf("%s-%d", tag, n), uuid.NewString())
		job := workqclient.Job{
			ID: r.id, Name: queueOf(n), TTR: time.Minute, TTL: 6 * time.Hour, Wait: harness.Patience,
			Body: []byte(r.body),
		}
		add := c.Add
		if n%16 == 5 {
			r.later, job.Name, job.At, add = true, later, time.Now().Add(4*time.Hour), c.Schedule
		}
		if add(job) != nil {
			return
		}
		k.acked(r, "")
		if n%16 == 7 { // in the queue without workers
			k.ending(r)
			if c.Delete(r.id) != nil {
				return
			}
			k.ended(r)
		}
	}
}

// workGearman completes jobs; Gearman does not acknowledge completions.
func workGearman(b *harness.Broker, k *ledger) {
	c, err := gearmanclient.Dial(b.Gearman)
	if err != nil || c.Send(gearmanclient.CanDo, worked) != nil {
		return
	}
	defer func() { _ = c.Close() }() // it is broken
	for {
		handle, _, _, body, err := c.Grab(harness.Patience)
		if err != nil {
			return
		}
		k.ending(k.handedOut(body))
		if c.Send(gearmanclient.WorkComplete, handle, "") != nil {
			return
		}
	}
}

// workFaktory completes jobs and fails some, which must be retried.
func workFaktory(b *harness.Broker, k *ledger) {
	c, err := harness.OpenFaktory(b, harness.Patience)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // it is broken
	for n := 0; ; n++ {
		job, err := c.Fetch(worked)
		if err != nil {
			return
		}
		if job == nil {
			continue
		}
		r := k.handedOut(fmt.Sprint(job.Args[0]))
		if n%8 == 3 {
			if !strings.HasPrefix(r.body, "faktory-") {
				k.ending(r) // a failed Gearman job is finished
			}
			if c.Fail(job.Jid, errors.New("on purpose"), nil) != nil {
				return
			}
			continue
		}
		k.ending(r)
		if c.Ack(job.Jid) != nil {
			return
		}
		k.ended(r)
	}
}

func workWorkq(b *harness.Broker, k *ledger) {
	c, err := workqclient.Dial(b.Workq)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // it is broken
	for {
		l, err := c.Lease(harness.Patience, worked)
		if err != nil {
			return
		}
		r := k.handedOut(string(l.Body))
		k.ending(r)
		if c.Complete(l.ID, nil) != nil {
			return
		}
		k.ended(r)
	}
}

// load runs clients of all kinds until the broker dies. The caller waits for them.
func load(b *harness.Broker, k *ledger, round int) *sync.WaitGroup {
	var clients sync.WaitGroup
	for n := range 2 {
		tag := fmt.Sprintf("%d-%d", round, n)
		clients.Go(func() { submitGearman(b, k, "gearman-"+tag) })
		clients.Go(func() { submitFaktory(b, k, "faktory-"+tag) })
		clients.Go(func() { submitWorkq(b, k, "workq-"+tag) })
	}
	clients.Go(func() { workGearman(b, k) })
	clients.Go(func() { workFaktory(b, k) })
	clients.Go(func() { workWorkq(b, k) })
	return &clients
}

// drain leases and completes all ready jobs, over several connections, and returns their number.
func (b *ledger) drain(broker *harness.Broker) int {
	var workers sync.WaitGroup
	var mu sync.Mutex // guards total
	total := 0
	for range 8 {
		workers.Go(func() {
			c, err := workqclient.Dial(broker.Workq)
			if err != nil {
				b.t.Error(err)
				return
			}
			defer func() { _ = c.Close() }() // every reply was read
			n := 0
			for ; ; n++ {
				l, err := c.Lease(0, worked, waiting)
				if errors.Is(err, workqclient.ErrTimeout) {
					break
				}
				if err != nil {
					b.t.Error(err)
					break
				}
				r := b.handedOut(string(l.Body))
				b.ending(r)
				if err := c.Complete(l.ID, nil); err != nil {
					b.t.Errorf("%s: %v", r.body, err)
				}
				b.ended(r)
			}
			mu.Lock()
			total += n
			mu.Unlock()
		})
	}
	workers.Wait()
	return total
}

// workersOfALife is the number of workers of load.
const workersOfALife = 3

// place is the state of a job that no worker received.
type place int

const (
	lost place = iota
	leased
	notDue // scheduled, retrying, buried, or waiting for another job
	ready
)

// checkLost finds every job that no worker received: it must be leased to a worker that died with the broker, retrying,
// or not due.
func (b *ledger) checkLost(broker *harness.Broker) {
	gearman, err := gearmanclient.Dial(broker.Gearman)
	check(b.t, err)
	defer func() { _ = gearman.Close() }() // every reply was read
	wq, err := workqclient.Dial(broker.Workq)
	check(b.t, err)
	defer func() { _ = wq.Close() }() // likewise
	b.checkPlaces(broker, func(r *record) place { return b.find(gearman, wq, r) })
}

// checkPlaces is checkLost with a way to find a job.
func (b *ledger) checkPlaces(broker *harness.Broker, find func(*record) place) {
	var found [ready + 1][]*record
	for _, r := range b.unseen() {
		at := find(r)
		found[at] = append(found[at], r)
	}
	for _, r := range found[lost] {
		b.t.Errorf("%s was acknowledged and never finished, but is lost", r.body)
	}
	if n := len(found[leased]); n > b.workers*b.life {
		b.t.Errorf("%d jobs are leased to dead workers, after %d lives with %d workers each", n, b.life, b.workers)
	}
	if len(found[ready]) > 0 { // their leases may have expired, or their retries become due, since the drain
		b.drain(broker)
	}
	for _, r := range found[ready] {
		if !r.endAcked {
			b.t.Errorf("%s is ready but is not handed out", r.body)
		}
	}
}

func (b *ledger) find(gearman *gearmanclient.Client, wq *workqclient.Client, r *record) place {
	if r.handle != "" {
		check(b.t, gearman.Send(gearmanclient.GetStatus, r.handle))
		p, err := gearman.Expect(gearmanclient.StatusRes, harness.Patience)
		check(b.t, err)
		switch args := p.Args(5); {
		case args[1] != "1":
			return lost
		case args[2] == "1":
			return leased
		}
		return ready
	}
	o, err := wq.InspectJob(r.id)
	if errors.Is(err, workqclient.ErrNotFound) {
		return lost
	}
	check(b.t, err)
	const isPending, isLeased = "3", "4"
	state := o.Value("state")
	switch {
	case state == isLeased:
		return leased
	case r.later, state == isPending && o.Value("fails") != "0":
		return notDue
	}
	return ready
}
