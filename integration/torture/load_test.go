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

// Workers take jobs from the first queue; what is in the second waits; what is in the third is not due.
const (
	worked  = "torture-worked"
	waiting = "torture-waiting"
	later   = "torture-later"
)

// queueOf spreads jobs over the first two.
func queueOf(n int) string {
	if n%2 == 0 {
		return worked
	}
	return waiting
}

// Every client runs until its connection breaks. What it was doing then is neither acknowledged nor forgotten: the books
// were told before each step.

func submitGearman(b *harness.Broker, k *books, tag string) {
	c, err := gearmanclient.Dial(b.Gearman)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
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

func submitFaktory(b *harness.Broker, k *books, tag string) {
	c, err := harness.OpenFaktory(b, harness.Patience)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
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

// submitWorkq also schedules some jobs and removes some.
func submitWorkq(b *harness.Broker, k *books, tag string) {
	c, err := workqclient.Dial(b.Workq)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
	for n := 0; ; n++ {
		r := k.submitting(fmt.Sprintf("%s-%d", tag, n), uuid.NewString())
		job := workqclient.Job{
			ID: r.id, Name: queueOf(n), TTR: time.Minute, TTL: 6 * time.Hour, Wait: harness.Patience, Body: []byte(r.body),
		}
		add := c.Add
		if n%16 == 5 {
			r.later, job.Name, job.At, add = true, later, time.Now().Add(4*time.Hour), c.Schedule
		}
		if add(job) != nil {
			return
		}
		k.acked(r, "")
		if n%16 == 7 { // in the queue that nobody works for
			k.ending(r)
			if c.Delete(r.id) != nil {
				return
			}
			k.ended(r)
		}
	}
}

// workGearman completes jobs; the protocol acknowledges no completion.
func workGearman(b *harness.Broker, k *books) {
	c, err := gearmanclient.Dial(b.Gearman)
	if err != nil || c.Send(gearmanclient.CanDo, worked) != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
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

// workFaktory completes jobs and fails some, which must then come back.
func workFaktory(b *harness.Broker, k *books) {
	c, err := harness.OpenFaktory(b, harness.Patience)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
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
				k.ending(r) // in its protocol a failure is the end
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

func workWorkq(b *harness.Broker, k *books) {
	c, err := workqclient.Dial(b.Workq)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // broken already
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

// load runs clients of all kinds until the broker dies. The result waits for them.
func load(b *harness.Broker, k *books, round int) *sync.WaitGroup {
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

// drain takes and completes everything that is ready, over several connections, and tells how much that was.
func (b *books) drain(broker *harness.Broker) int {
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
			defer func() { _ = c.Close() }() // nothing is left to say
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

// workersOfALife is how many workers load has: each may be handed one job that it never hears of.
const workersOfALife = 3

// place is where a job is that nobody was handed.
type place int

const (
	lost place = iota
	leased
	notDue // scheduled, or waiting for its next try
	ready
)

// account finds in the broker every job that nobody got: leased to a worker that died with the broker, waiting for a
// retry, or not due.
func (b *books) account(broker *harness.Broker) {
	gearman, err := gearmanclient.Dial(broker.Gearman)
	check(b.t, err)
	defer func() { _ = gearman.Close() }() // nothing is left to say
	wq, err := workqclient.Dial(broker.Workq)
	check(b.t, err)
	defer func() { _ = wq.Close() }() // likewise
	var found [ready + 1][]*record
	for _, r := range b.unseen() {
		at := b.find(gearman, wq, r)
		found[at] = append(found[at], r)
	}
	for _, r := range found[lost] {
		b.t.Errorf("%s was acknowledged, never finished, and is lost", r.body)
	}
	if n := len(found[leased]); n > workersOfALife*b.life {
		b.t.Errorf("%d jobs are leased to nobody, in %d lives with %d workers each", n, b.life, workersOfALife)
	}
	if len(found[ready]) > 0 { // their leases may have run out, or their next try come, since they were drained
		b.drain(broker)
	}
	for _, r := range found[ready] {
		if !r.endAcked {
			b.t.Errorf("%s is ready, and nobody gets it", r.body)
		}
	}
}

func (b *books) find(gearman *gearmanclient.Client, wq *workqclient.Client, r *record) place {
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
