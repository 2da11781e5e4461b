package torture_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"broker/integration/beanstalkclient"
	"broker/integration/conveyorclient"
	"broker/integration/harness"
	"broker/integration/server"
	"broker/integration/workqclient"
)

// fronts are clients of Beanstalk and of Conveyor that submit and run each other's jobs.
type fronts struct {
	*harness.Broker
	k                   *ledger
	beanstalk, conveyor string

	mu      sync.Mutex // guards workers
	workers []string   // those of Conveyor that are gone
}

// The clients of a life.
const (
	frontProducers = 2 // of each kind
	frontWorkers   = 2 // of each kind
)

// TestKilledWithBeanstalkdAndConveyor: whenever the broker is killed under a load of both protocols, no acknowledged
// job is lost, and none is handed out after its end was acknowledged. In the end all of them can be run: those that
// workers have buried, delayed and failed, the children of each parent, and its heir.
func TestKilledWithBeanstalkdAndConveyor(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	f := &fronts{k: newLedger(t)}
	f.k.workers = 0 // jobs are given back when the connection or the worker is known to be gone
	var err error
	f.beanstalk, err = server.FreeAddr()
	check(t, err)
	f.conveyor, err = server.FreeAddr()
	check(t, err)
	f.Broker = harness.Start(t, harness.Options{Args: []string{"--beanstalk", f.beanstalk, "--conveyor", f.conveyor}})
	f.k.started()
	n, pruned := rounds(t), 0
	for round := 0; round < n || round < 20*n && f.k.tooLittle(n); round++ {
		clients := f.load(round)
		time.Sleep(30*time.Millisecond + rand.N(700*time.Millisecond)) // the moment of the kill varies
		f.Crash()
		clients.Wait() // they end with their connections
		f.Restart()
		f.k.started()
		pruned += f.prune()
		f.k.drain(f.Broker)
		f.checkLost()
		if t.Failed() {
			t.Fatalf("after round %d of %d", round+1, n)
		}
	}
	lookedUp := f.k.lookedUp
	f.runAll()
	t.Logf("at least %d kills: %d jobs submitted, %d acknowledged, %d ends acknowledged, %d hand-outs, %d taken from dead workers, %d looked up",
		n, len(f.k.jobs), f.k.acks, f.k.ends, f.k.out, pruned, lookedUp)
	if f.k.tooLittle(n) {
		t.Errorf("too little happened before the kills: the test proves nothing")
	}
}

// load runs all clients until the broker dies. The caller waits for them.
func (f *fronts) load(round int) *sync.WaitGroup {
	var clients sync.WaitGroup
	run := func(fn func(tag string) error, tag string) {
		clients.Go(func() {
			err := fn(tag)
			var said redis.Error
			var refused beanstalkclient.Refusal
			if errors.As(err, &said) || errors.As(err, &refused) {
				f.k.t.Errorf("a client in round %d was refused: %v", round, err)
			}
		})
	}
	for n := range frontProducers {
		run(f.submitBeanstalk, fmt.Sprintf("beanstalk-%d-%d", round, n))
		run(f.submitConveyor, fmt.Sprintf("conveyor-%d-%d", round, n))
	}
	for n := range frontWorkers {
		run(f.workBeanstalk, "")
		run(f.workConveyor, fmt.Sprintf("run-%d-%d", round, n))
	}
	return &clients
}

// submitBeanstalk also delays and deletes some jobs.
func (f *fronts) submitBeanstalk(tag string) error {
	c, err := beanstalkclient.Dial(f.beanstalk)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it is broken
	const burst = 8
	for n := 0; ; n += burst {
		tube, delay := queueOf(n/burst), time.Duration(0)
		if n/burst%16 == 5 {
			tube, delay = later, 4*time.Hour
		}
		if err := c.Use(tube); err != nil {
			return err
		}
		var sent []*record
		var jobs []beanstalkclient.Job
		for i := n; i < n+burst; i++ {
			r := f.k.submitting(fmt.Sprintf("%s-%d", tag, i), "")
			r.later = delay > 0
			sent = append(sent, r)
			jobs = append(jobs, beanstalkclient.Job{Pri: 1024, Delay: delay, TTR: time.Minute, Body: []byte(r.body)})
		}
		ids, err := c.Put(jobs...)
		for i, id := range ids {
			f.k.ackedAs(sent[i], id)
		}
		if err != nil {
			return err
		}
		if tube == waiting {
			f.k.ending(sent[0])
			if err := c.Do("DELETED", "delete "+ids[0]); err != nil {
				return err
			}
			f.k.ended(sent[0])
		}
	}
}

// ackedAs records that a put was acknowledged.
func (b *ledger) ackedAs(r *record, number string) {
	b.mu.Lock()
	r.number = number
	b.mu.Unlock()
	b.acked(r, "")
}

// submitConveyor also schedules some jobs; others are parents.
func (f *fronts) submitConveyor(tag string) error {
	c := conveyorclient.Open(f.conveyor)
	defer func() { _ = c.Close() }() // it is broken
	for n := 0; ; n++ {
		j := &conveyorclient.Job{Queue: queueOf(n)}
		body := fmt.Sprintf("%s-%d", tag, n)
		switch n % 16 {
		case 5:
			j.Queue, j.RunAt = later, time.Now().Add(4*time.Hour)
		case 8:
			body += parentEnd
		}
		if err := f.add(c, j, body); err != nil {
			return err
		}
	}
}

// parentEnd ends the bodies of jobs to which workers of Conveyor add children and an heir.
const parentEnd = "-parent"

// add submits a job of Conveyor.
func (f *fronts) add(c *conveyorclient.Client, j *conveyorclient.Job, body string) error {
	j.UUID, j.Payload = conveyorclient.NewID(), []byte(body)
	r := f.k.submitting(body, j.UUID)
	r.later, r.family = !j.RunAt.IsZero(), j.Parent != "" || j.Predecessor != ""
	if err := c.Add(context.Background(), j); err != nil {
		return err
	}
	f.k.acked(r, "")
	return nil
}

// workBeanstalk deletes jobs, and releases, delays and buries some.
func (f *fronts) workBeanstalk(string) error {
	c, err := beanstalkclient.Dial(f.beanstalk)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it is broken
	if err := errors.Join(c.Watch(worked), c.Ignore("default")); err != nil {
		return err
	}
	for n := 0; ; n++ {
		job, err := c.Reserve(harness.Patience)
		if err != nil {
			return err
		}
		r := f.k.handedOut(string(job.Body))
		switch n % 12 {
		case 3:
			f.k.returning(r, false)
			err = c.Do("RELEASED", "release "+job.ID+" 1024 0")
		case 5:
			f.k.returning(r, true)
			err = c.Do("RELEASED", "release "+job.ID+" 2000 14400")
		case 7:
			f.k.returning(r, true)
			err = c.Do("BURIED", "bury "+job.ID+" 10")
		default:
			f.k.ending(r)
			if err = c.Do("DELETED", "delete "+job.ID); err == nil {
				f.k.ended(r)
			}
		}
		if err != nil {
			return err
		}
	}
}

// workConveyor closes jobs and fails some. It adds children and an heir to parents.
func (f *fronts) workConveyor(tag string) error {
	c := conveyorclient.Open(f.conveyor)
	defer func() { _ = c.Close() }() // it is broken
	f.mu.Lock()
	f.workers = append(f.workers, c.Worker())
	f.mu.Unlock()
	ctx := context.Background()
	for n := 0; ; n++ {
		j, err := c.Pop(ctx, worked)
		if err != nil {
			return err
		}
		if j == nil {
			continue
		}
		body := string(j.Payload)
		r := f.k.handedOut(body)
		if strings.HasSuffix(body, parentEnd) {
			heir := &conveyorclient.Job{Queue: worked, Predecessor: j.UUID}
			if err := f.add(c, heir, body+"-heir-"+tag); err != nil {
				return err
			}
			for i := range 2 {
				child := &conveyorclient.Job{Queue: worked, Parent: j.UUID}
				if err := f.add(c, child, fmt.Sprintf("%s-child-%s-%d", body, tag, i)); err != nil {
					return err
				}
			}
		}
		if n%8 == 3 && j.Retry == 0 {
			f.k.returning(r, true)
			if err := c.Fail(ctx, j.UUID); err != nil {
				return err
			}
			continue
		}
		f.k.ending(r)
		if _, err := c.Finish(ctx, j); err != nil {
			return err
		}
		f.k.ended(r)
	}
}

// prune takes the jobs of the workers of Conveyor that died with the broker, as the next one to start does.
func (f *fronts) prune() (n int) {
	c := conveyorclient.Open(f.conveyor)
	defer func() { _ = c.Close() }() // every reply was read
	for _, worker := range f.workers {
		jobs, err := c.Prune(context.Background(), worker)
		check(f.k.t, err)
		n += jobs
	}
	f.workers = nil
	return n
}

// checkLost finds every job that no worker received.
func (f *fronts) checkLost() {
	t := f.k.t
	c, err := beanstalkclient.Dial(f.beanstalk)
	check(t, err)
	defer func() { _ = c.Close() }() // every reply was read
	wq, err := workqclient.Dial(f.Workq)
	check(t, err)
	defer func() { _ = wq.Close() }() // likewise
	f.k.checkPlaces(f.Broker, func(r *record) place {
		if r.number == "" {
			at := f.k.find(nil, wq, r)
			if at == ready && (r.parked || r.family) {
				return notDue
			}
			return at
		}
		stats, err := c.Stats("stats-job " + r.number)
		if errors.Is(err, beanstalkclient.NotFound) {
			return lost
		}
		check(t, err)
		switch state := stats["state"]; {
		case state == "reserved":
			return leased
		case state != "ready" && (r.later || r.parked):
			return notDue
		}
		return ready
	})
}

// runAll runs everything that is left, but for what is not due.
func (f *fronts) runAll() {
	t := f.k.t
	c, err := beanstalkclient.Dial(f.beanstalk)
	check(t, err)
	defer func() { _ = c.Close() }() // every reply was read
	harness.Eventually(t, func() string {
		for _, tube := range []string{worked, waiting} {
			check(t, c.Use(tube))
			for {
				n, err := c.Kick(1_000_000)
				check(t, err)
				if n == 0 {
					break
				}
			}
		}
		f.k.drain(f.Broker)
		left := 0
		example := ""
		for _, r := range f.k.unseen() {
			if !r.later {
				left++
				example = fmt.Sprintf("%+v", *r)
			}
		}
		if left > 0 {
			return fmt.Sprintf("%d jobs were not run, such as %s", left, example)
		}
		return ""
	})
}
