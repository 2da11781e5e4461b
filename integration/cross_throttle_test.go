package integration_test

import (
	"fmt"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// wantNoJob checks that no worker of any protocol gets a job from the queue.
func (d clients) wantNoJob(t *testing.T) {
	t.Helper()
	const queue = "narrow"
	if job, err := d.faktory.Fetch(queue); job != nil || err != nil { // waits for two seconds
		t.Fatalf("Faktory fetched %v, %v", job, err)
	}
	_, err := d.workq.Lease(0, queue)
	wantIs(t, err, workqclient.ErrTimeout)
	check(t, d.gearman.Send(gearmanclient.CanDo, queue))
	check(t, d.gearman.Send(gearmanclient.GrabJob))
	_, err = d.gearman.Expect(gearmanclient.NoJob, harness.Patience)
	check(t, err)
	check(t, d.gearman.Send(gearmanclient.CantDo, queue))
}

func TestThrottleCountsTheWorkersOfAllProtocols(t *testing.T) {
	t.Parallel()
	b, rewrite := reloadable(t, "[throttles]\nnarrow = {concurrency = 3, timeout = 600}\n")
	d := open(t, b)
	for range 10 {
		check(t, d.workq.Add(wqJob("narrow", "x")))
	}
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "narrow"))
	handle, _, _, _, err := w.Grab(harness.Patience)
	check(t, err)
	fetched := fetchSoon(t, d.faktory, "narrow")
	leased, err := d.workq.Lease(harness.Patience, "narrow")
	check(t, err)
	d.wantNoJob(t)

	// However a job ends, it makes room for the next one.
	check(t, w.Send(gearmanclient.WorkComplete, handle, ""))
	leased2, err := d.workq.Lease(harness.Patience, "narrow")
	check(t, err)
	d.wantNoJob(t)
	check(t, d.faktory.Ack(fetched.Jid))
	check(t, w.Send(gearmanclient.PreSleep))
	_, err = w.Expect(gearmanclient.Noop, harness.Patience)
	check(t, err)
	_, _, _, _, err = w.Grab(harness.Patience)
	check(t, err)
	d.wantNoJob(t)
	check(t, w.Close()) // the connection is lost with its job
	fetchSoon(t, d.faktory, "narrow")
	check(t, d.workq.Fail(leased.ID, nil))
	fetchSoon(t, d.faktory, "narrow")
	check(t, d.workq.Delete(leased2.ID))
	fetchSoon(t, d.faktory, "narrow")
	d.wantNoJob(t)

	// Widening and removing the throttle takes effect at once, also for waiting workers.
	got := make(chan error, 1)
	waiting := harness.DialWorkq(t, b)
	go func() { // ends with the lease
		_, err := waiting.Lease(harness.Patience, "narrow")
		got <- err
	}()
	time.Sleep(50 * time.Millisecond)
	rewrite("[throttles]\nnarrow = {concurrency = 4, timeout = 600}\n")
	check(t, <-got)
	d.wantNoJob(t)
	rewrite("")
	fetchSoon(t, d.faktory, "narrow")
}

func TestThrottlePerWorkerCountsItsOwnJobs(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Config: "[throttles]\nshared = {worker = 1, timeout = 600}\n"})
	d := open(t, b)
	for i := range 6 {
		check(t, d.workq.Add(wqJob("shared", fmt.Sprint(i))))
	}
	first, second := harness.DialGearman(t, b), harness.DialGearman(t, b)
	for _, w := range []*gearmanclient.Client{first, second} {
		check(t, w.Send(gearmanclient.CanDo, "shared"))
		_, _, _, _, err := w.Grab(harness.Patience)
		check(t, err)
		check(t, w.Send(gearmanclient.GrabJob))
		_, err = w.Expect(gearmanclient.NoJob, harness.Patience)
		check(t, err)
	}
	_, err := d.workq.Lease(harness.Patience, "shared")
	check(t, err)
	_, err = d.workq.Lease(0, "shared")
	wantIs(t, err, workqclient.ErrTimeout)
	_, err = harness.DialWorkq(t, b).Lease(0, "shared")
	check(t, err)
	fetchSoon(t, d.faktory, "shared")
	if job, err := d.faktory.Fetch("shared"); job != nil || err != nil {
		t.Fatalf("one worker got two jobs: %v, %v", job, err)
	}
}

func TestThrottleTimeoutMakesRoom(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Config: "[throttles]\ntimed = {concurrency = 1, timeout = 1}\n"})
	d := open(t, b)
	check(t, d.workq.Add(wqJob("timed", "first")))
	check(t, d.workq.Add(wqJob("timed", "second")))
	begin := time.Now()
	l, err := d.workq.Lease(harness.Patience, "timed")
	check(t, err)
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "timed"))
	_, _, _, body, err := w.Grab(harness.Patience)
	check(t, err)
	equal(t, "body", body, "second")
	if took := time.Since(begin); took < 900*time.Millisecond {
		t.Errorf("the throttle had room after %v", took)
	}
	check(t, d.workq.Complete(l.ID, []byte("in time"))) // the lease is still valid
}

// TestThrottleUsesTheFullQueueName: with a namespace, Gearman's queue "narrow" is a different queue.
func TestThrottleUsesTheFullQueueName(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Config: "[gearman]\nnamespace = \"g.\"\n[throttles]\n" +
		"\"g.narrow\" = {concurrency = 1, timeout = 600}\nwide = {concurrency = 1, timeout = 600}\n"})
	w := harness.DialGearman(t, b)
	for queue, throttled := range map[string]bool{"narrow": true, "wide": false} {
		for range 2 {
			_, err := w.Submit(gearmanclient.SubmitJobBg, queue, "", "x")
			check(t, err)
		}
		check(t, w.Send(gearmanclient.CanDo, queue))
		_, _, _, _, err := w.Grab(harness.Patience)
		check(t, err)
		check(t, w.Send(gearmanclient.GrabJob))
		p, err := w.Read(harness.Patience)
		check(t, err)
		equal(t, queue+" is throttled", p.Type == gearmanclient.NoJob, throttled)
		check(t, w.Send(gearmanclient.CantDo, queue))
	}
}
