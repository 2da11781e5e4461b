//go:build nightly

package integration_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

// fleetQueues are the queues of the jobs; the workers give them the weights 5, 3 and 1.
var fleetQueues = []string{"critical", "default", "low"}

// producer pushes jobs and records what was acknowledged. It reconnects when the broker is killed.
type producer struct {
	b     *harness.Broker
	l     *ledger
	c     *faktory.Client
	turns int
}

// retry repeats a request until it is answered. lost reports that a reply may have been lost. An error reply is final,
// unless the broker is shutting down.
func (p *producer) retry(request func(*faktory.Client) error) (lost bool, err error) {
	for deadline := time.Now().Add(harness.Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if p.c == nil {
			if p.c, err = harness.OpenFaktory(p.b, harness.Patience); err != nil {
				continue
			}
		}
		if err = request(p.c); err == nil {
			return lost, nil
		}
		refusal := (*faktory.ProtocolError)(nil)
		if errors.As(err, &refusal) && !strings.Contains(err.Error(), "shutdown in progress") {
			return lost, err
		}
		lost = lost || refusal == nil
		_ = p.c.Close() // it is broken
		p.c = nil
	}
	return lost, err
}

func (p *producer) close() {
	if p.c != nil {
		_ = p.c.Close() // every reply was read
	}
}

// job creates a job that takes a few milliseconds.
func (p *producer) job(kind string) *faktory.Job {
	p.turns++
	job := faktory.NewJob("Shift", kind, p.turns, strings.Repeat("x", p.turns%200))
	job.Queue, job.ReserveFor = fleetQueues[p.turns%len(fleetQueues)], 60
	job.SetCustom("ms", p.turns%5)
	return job
}

// push pushes a job with a known fate.
func (p *producer) push(job *faktory.Job, kind, fate string) error {
	lost, err := p.retry(func(c *faktory.Client) error { return c.Push(job) })
	if err != nil {
		return fmt.Errorf("push of %s job %s: %w", kind, job.Jid, err)
	}
	p.l.note(job, kind, fate, lost)
	return nil
}

// work pushes until the ledger has that many jobs.
func (p *producer) work(until int) error {
	for i := 0; p.l.size() < until; i++ {
		if err := p.turn(i); err != nil {
			return err
		}
		time.Sleep(time.Millisecond) // spreads the load
	}
	return nil
}

func (p *producer) turn(i int) error {
	switch i % 20 {
	case 2, 12:
		job := p.job("scheduled")
		job.At = time.Now().Add(time.Duration(i%3000) * time.Millisecond).UTC().Format(time.RFC3339Nano)
		return p.push(job, "scheduled", mustEnd)
	case 4, 14:
		job := p.job("flaky")
		job.SetCustom("fails", 1+i/20%2)
		return p.push(job, "flaky", mustEnd)
	case 6:
		job := p.job("hopeless")
		once := 1
		job.Retry = &once
		job.SetCustom("fails", 1000)
		return p.push(job, "hopeless", mustDie)
	case 8:
		return p.unique()
	case 10:
		return p.bulk()
	case 16:
		if i%100 == 16 {
			return p.batch()
		}
	}
	return p.push(p.job("plain"), "plain", mustEnd)
}

// unique pushes a unique job, and the same again while the first one waits.
func (p *producer) unique() error {
	job, due := p.job("unique"), time.Now().Add(2*time.Second)
	job.SetUniqueFor(600)
	job.At = due.UTC().Format(time.RFC3339Nano)
	again := faktory.NewJob(job.Type, job.Args...)
	again.Queue = job.Queue
	again.SetUniqueFor(600)
	if err := p.push(job, "unique", mustEnd); err != nil {
		return err
	}
	_, err := p.retry(func(c *faktory.Client) error { return c.Push(again) })
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "NOTUNIQUE"):
		p.l.note(again, "twin", mustStay, false)
	case err != nil:
		return fmt.Errorf("second push of a unique job: %w", err)
	case time.Now().Before(due):
		return fmt.Errorf("unique job %s was accepted again as %s", job.Jid, again.Jid)
	default: // the first job was due meanwhile, and may be done
		p.l.note(again, "twin", mustEnd, true)
	}
	return nil
}

func (p *producer) bulk() error {
	jobs := make([]*faktory.Job, 20)
	for i := range jobs {
		jobs[i] = p.job("bulk")
	}
	var refused map[string]string
	lost, err := p.retry(func(c *faktory.Client) (err error) {
		refused, err = c.PushBulk(jobs)
		return err
	})
	if err != nil || len(refused) > 0 {
		return fmt.Errorf("bulk push: refused %v, %w", refused, err)
	}
	for _, job := range jobs {
		p.l.note(job, "bulk", mustEnd, lost)
	}
	return nil
}

// batch pushes a batch of five jobs, one of which fails once, with both callbacks.
func (p *producer) batch() error {
	var batch *faktory.Batch
	if _, err := p.retry(func(c *faktory.Client) error {
		// A batch whose reply was lost stays empty and expires.
		batch = faktory.NewBatch(c)
		batch.Complete, batch.Success = p.job("complete"), p.job("success")
		_, err := c.BatchNew(batch)
		return err
	}); err != nil {
		return fmt.Errorf("new batch: %w", err)
	}
	b := batchEntry{bid: batch.Bid, complete: batch.Complete.Jid, success: batch.Success.Jid}
	for i := range 5 {
		job := p.job("member")
		job.SetCustom("bid", batch.Bid)
		if i == 2 {
			job.SetCustom("fails", 1)
		}
		if err := p.push(job, "member", mustEnd); err != nil {
			return err
		}
		b.members = append(b.members, job.Jid)
	}
	lost, err := p.retry(func(c *faktory.Client) error { return c.BatchCommit(batch.Bid) })
	if err != nil && !lost { // otherwise the repeated commit is refused
		return fmt.Errorf("commit of batch %s: %w", batch.Bid, err)
	}
	p.l.note(batch.Complete, "complete", mustEnd, false)
	p.l.note(batch.Success, "success", mustEnd, false)
	p.l.noteBatch(b)
	return nil
}
