package integration_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// drainInOrder leases and completes all ready jobs of a queue and returns their bodies.
func drainInOrder(t *testing.T, b *harness.Broker, queue string) []string {
	t.Helper()
	c := harness.DialWorkq(t, b)
	var found []string
	for {
		l, err := c.Lease(0, queue)
		if errors.Is(err, workqclient.ErrTimeout) {
			return found
		}
		check(t, err)
		found = append(found, string(l.Body))
		check(t, c.Complete(l.ID, nil))
	}
}

func TestTenThousandWaitingJobsSurviveAKill(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	const perProtocol = 3400
	var want [3][]string
	gearman := harness.DialGearman(t, b)
	for first := 0; first < perProtocol; first += 200 {
		var burst []byte
		for i := first; i < first+200; i++ {
			body := fmt.Sprintf("gearman-%05d", i)
			want[0] = append(want[0], body)
			burst = gearmanclient.Append(burst, gearmanclient.SubmitJobBg, "kept-gearman", "", body)
		}
		check(t, gearman.Write(burst))
		for range 200 {
			_, err := gearman.Expect(gearmanclient.JobCreated, harness.Patience)
			check(t, err)
		}
	}
	fkt := dialFaktory(t, b)
	for first := 0; first < perProtocol; first += 200 {
		var jobs []*faktory.Job
		for i := first; i < first+200; i++ {
			body := fmt.Sprintf("faktory-%05d", i)
			want[1] = append(want[1], `["`+body+`"]`)
			jobs = append(jobs, fktJob("kept-faktory", body))
		}
		refused, err := fkt.PushBulk(jobs)
		check(t, err)
		equal(t, "refused", len(refused), 0)
	}
	wq := harness.DialWorkq(t, b)
	for first := 0; first < perProtocol; first += 200 {
		var burst strings.Builder
		for i := first; i < first+200; i++ {
			body := fmt.Sprintf("workq-%05d", i)
			want[2] = append(want[2], body)
			fmt.Fprintf(&burst, "add %s kept-workq 60000 3600000 %d\r\n%s\r\n", newID(), len(body), body)
		}
		check(t, wq.Send([]byte(burst.String())))
		for range 200 {
			line, err := wq.Line(harness.Patience)
			check(t, err)
			equal(t, "reply", line, "+OK")
		}
	}
	b.Crash()
	b.Restart()
	for i, queue := range []string{"kept-gearman", "kept-faktory", "kept-workq"} {
		got := drainInOrder(t, b, queue)
		equal(t, "jobs in "+queue, len(got), perProtocol)
		equal(t, "order of "+queue+" unchanged", strings.Join(got, "\n") == strings.Join(want[i], "\n"), true)
	}
}

func TestEveryAcknowledgedStateSurvivesAKill(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	var after []func()
	for _, prepare := range []func(*testing.T, *harness.Broker) func(){gearmanStates, workqStates, faktoryStates} {
		after = append(after, prepare(t, b))
	}
	b.Crash()
	b.Restart()
	for _, look := range slices.Backward(after) { // Faktory's totals include the jobs that the other protocols finish
		look()
	}
}

// faktoryStates creates a scheduled, a retrying, a dead and a reserved job, and a paused queue. Like the functions
// below it returns a function that checks all of them after the crash.
func faktoryStates(t *testing.T, b *harness.Broker) (after func()) {
	t.Helper()
	fkt := dialFaktory(t, b)
	scheduled := fktJob("state-scheduled", 1)
	scheduled.At = time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	check(t, fkt.Push(scheduled))
	for _, retry := range []int{25, -1} { // the second one dies at its first failure
		job := patient(fktJob("state-failed", 1))
		job.Retry = &retry
		check(t, fkt.Push(job))
		_, err := fkt.Fetch("state-failed")
		check(t, err)
		check(t, fkt.Fail(job.Jid, fmt.Errorf("it broke"), nil))
	}
	reserved := fktJob("state-reserved", 1)
	check(t, fkt.Push(reserved))
	_, err := fkt.Fetch("state-reserved")
	check(t, err)
	check(t, fkt.Push(fktJob("state-paused", 1)))
	check(t, fkt.PauseQueues("state-paused"))
	before := fktState(t, fkt)
	return func() {
		fkt := dialFaktory(t, b)
		now := fktState(t, fkt)
		equal(t, "sets", fmt.Sprint(now.Data.Sets), fmt.Sprint(before.Data.Sets))
		equal(t, "processed", now.Data.TotalProcessed, before.Data.TotalProcessed)
		equal(t, "failures", now.Data.TotalFailures, before.Data.TotalFailures)
		none, err := fkt.Fetch("state-reserved", "state-paused")
		check(t, err)
		equal(t, "fetched from a paused queue, or a reserved job", none == nil, true)
		check(t, fkt.Ack(reserved.Jid))
		equal(t, "processed after the ACK", fktState(t, fkt).Data.TotalProcessed, before.Data.TotalProcessed+1)
	}
}

// workqStates creates a completed, a failed, a deleted, a scheduled and a leased job.
func workqStates(t *testing.T, b *harness.Broker) (after func()) {
	t.Helper()
	wq := harness.DialWorkq(t, b)
	finished, deleted, leased := wqJob("state-finished", "x"), wqJob("state-deleted", "x"), wqJob("state-leased", "x")
	failed, later := wqJob("state-wq-failed", "x"), wqJob("state-later", "x")
	later.At = time.Now().Add(time.Hour)
	for _, job := range []workqclient.Job{finished, deleted, leased, failed} {
		check(t, wq.Add(job))
	}
	check(t, wq.Schedule(later))
	check(t, wq.Complete(finished.ID, []byte("the result")))
	check(t, wq.Fail(failed.ID, []byte("the reason")))
	check(t, wq.Delete(deleted.ID))
	_, err := wq.Lease(0, "state-leased")
	check(t, err)
	return func() {
		wq := harness.DialWorkq(t, b)
		r, err := wq.Result(finished.ID, 0)
		check(t, err)
		equal(t, "result", r, workqclient.Result{OK: true, Body: []byte("the result")})
		r, err = wq.Result(failed.ID, 0)
		check(t, err)
		equal(t, "failure", r, workqclient.Result{Body: []byte("the reason")})
		_, err = wq.InspectJob(deleted.ID)
		wantIs(t, err, workqclient.ErrNotFound)
		equal(t, "scheduled", queueLens(wq, "state-later"), "0 1")
		check(t, wq.Complete(leased.ID, []byte("late but welcome")))
	}
}

// gearmanStates creates a queue limit, a unique job and a running job.
func gearmanStates(t *testing.T, b *harness.Broker) (after func()) {
	t.Helper()
	gearman := harness.DialGearman(t, b)
	for _, order := range []string{"create function state-limited", "maxqueue state-limited 1"} {
		reply, err := gearman.Admin(order)
		check(t, err)
		equal(t, order, reply, "OK\r\n")
	}
	unique, err := gearman.Submit(gearmanclient.SubmitJobBg, "state-limited", "the-key", "x")
	check(t, err)
	worker := harness.DialGearman(t, b)
	_, err = gearman.Submit(gearmanclient.SubmitJobBg, "state-running", "", "running")
	check(t, err)
	check(t, worker.Send(gearmanclient.CanDo, "state-running"))
	_, _, _, _, err = worker.Grab(harness.Patience)
	check(t, err)
	return func() {
		gearman := harness.DialGearman(t, b)
		again, err := gearman.Submit(gearmanclient.SubmitJobBg, "state-limited", "the-key", "x")
		check(t, err)
		equal(t, "handle of the unique job", again, unique)
		check(t, gearman.Send(gearmanclient.SubmitJobBg, "state-limited", "", "x"))
		p, err := gearman.Expect(gearmanclient.Error, harness.Patience)
		check(t, err)
		equal(t, "limit", p.Args(2)[0], "QUEUE_ERROR")
		// The connection that held the running job is gone: the job is ready for the next worker.
		equal(t, "running job", drainInOrder(t, b, "state-running"), []string{"running"})
	}
}

func TestForegroundJobsAreNotStored(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	gearman, wq := harness.DialGearman(t, b), harness.DialWorkq(t, b)
	_, err := gearman.Submit(gearmanclient.SubmitJob, "ephemeral", "", "x")
	check(t, err)
	check(t, wq.Send([]byte("run "+newID()+" ephemeral 60000 60000 1\r\nx\r\n")))
	awaitStatus(t, b, "ephemeral", "2 0 0")
	b.Crash()
	b.Restart()
	equal(t, "found", len(drainInOrder(t, b, "ephemeral")), 0)
}

func TestTerminationIsCleanAndQuick(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	// Waiting clients must not delay the shutdown.
	sleeper, fetcher, leaser := harness.DialGearman(t, b), dialFaktory(t, b), harness.DialWorkq(t, b)
	check(t, sleeper.Send(gearmanclient.CanDo, "f"))
	check(t, sleeper.Send(gearmanclient.PreSleep))
	go func() { _, _ = fetcher.Fetch("f") }() // ends with the broker
	check(t, leaser.Send([]byte("lease f 60000\r\n")))
	silent, err := net.Dial("tcp", b.Faktory)
	check(t, err)
	defer func() { _ = silent.Close() }() // it never sends anything
	gearman := harness.DialGearman(t, b)
	for i := range 100 {
		_, err := gearman.Submit(gearmanclient.SubmitJobBg, "stays", "", fmt.Sprint(i))
		check(t, err)
	}
	code, took := b.Terminate()
	equal(t, "exit code", code, 0)
	harness.CheckDuration(t, "the shutdown", took, 5*time.Second)
	b.Restart()
	equal(t, "jobs after the restart", len(drainInOrder(t, b, "stays")), 100)
	check(t, b.Signal(syscall.SIGINT))
	code, err = b.Wait(harness.Patience)
	check(t, err)
	equal(t, "exit code after SIGINT", code, 0)
}
