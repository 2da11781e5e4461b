package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// fetchSoon fetches until there is a job; retries and callbacks take a moment.
func fetchSoon(t testing.TB, c *faktory.Client, queues ...string) *faktory.Job {
	t.Helper()
	var job *faktory.Job
	harness.Eventually(t, func() string {
		var err error
		if job, err = c.Fetch(queues...); err != nil || job == nil {
			return fmt.Sprintf("nothing to fetch from %q: %v", queues, err)
		}
		return ""
	})
	return job
}

func TestFaktoryUniqueJobs(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t) // the free version of Faktory does not have it
	b := start(t)
	c := dialFaktory(t, b)
	unique := func(arg any) *faktory.Job { return fktJob("unique", arg).SetUniqueFor(60) }
	refused := func(job *faktory.Job) {
		t.Helper()
		if err := c.Push(job); err == nil || err.Error() != "NOTUNIQUE Job not unique" {
			t.Errorf("pushed twice: %v", err)
		}
	}
	check(t, c.Push(unique(1)))
	refused(unique(1))
	check(t, c.Push(unique(2)))           // different arguments
	check(t, c.Push(fktJob("unique", 1))) // without unique_for the lock is ignored
	first := fetchSoon(t, c, "unique")
	refused(unique(1)) // locked while it runs
	check(t, c.Fail(first.Jid, fmt.Errorf("it broke"), nil))
	refused(unique(1)) // and until its retry
	reply, err := c.Generic(`MUTATE {"cmd":"requeue","target":"retries"}`)
	check(t, err)
	equal(t, "requeue", reply, "OK")
	for range 3 {
		check(t, c.Ack(fetchSoon(t, c, "unique").Jid))
	}
	check(t, c.Push(unique(1)))

	untilStart := func() *faktory.Job { return unique("start").SetUniqueness(faktory.UntilStart) }
	check(t, c.Push(untilStart()))
	refused(untilStart())
	check(t, c.Ack(fetchSoon(t, c, "unique").Jid))
	fetchSoon(t, c, "unique")
	check(t, c.Push(untilStart())) // the first one has started

	b.Crash()
	b.Restart()
	c = dialFaktory(t, b)
	refused(untilStart()) // the lock is as durable as the job
}

func TestFaktoryExpiredJobsAreDropped(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	c := dialFaktory(t, b)
	check(t, c.Push(fktJob("expiring", "old").SetExpiresAt(time.Now().Add(-time.Minute))))
	check(t, c.Push(fktJob("expiring", "soon").SetExpiresIn(time.Second)))
	time.Sleep(1500 * time.Millisecond) // until the second job has expired too
	check(t, c.Push(fktJob("expiring", "fresh").SetExpiresIn(time.Hour)))
	equal(t, "fetched", fmt.Sprint(fetchSoon(t, c, "expiring").Args), "[fresh]")
}

func TestFaktoryTracking(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	c := dialFaktory(t, b)
	job := fktJob("tracked", 1)
	job.SetCustom("track", 1)
	check(t, c.Push(job))
	state := func(want string) *faktory.JobTrack {
		t.Helper()
		track, err := c.TrackGet(job.Jid)
		check(t, err)
		equal(t, "state", track.State, want)
		return track
	}
	state("enqueued")
	fetchSoon(t, c, "tracked")
	check(t, c.TrackSet(job.Jid, 42, "half way", nil))
	track := state("working")
	equal(t, "progress", fmt.Sprint(track.Percent, track.Description), "42half way")
	check(t, c.Fail(job.Jid, fmt.Errorf("it broke"), nil))
	state("failed")
	_, err := c.Generic(`MUTATE {"cmd":"requeue","target":"retries"}`)
	check(t, err)
	check(t, c.Ack(fetchSoon(t, c, "tracked").Jid))
	state("success")
	unknown, err := c.TrackGet("no-such-job-anywhere")
	check(t, err)
	equal(t, "unknown", unknown.State, "unknown")
}

func TestProgressCrossesProtocols(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	fkt, gearman := dialFaktory(t, b), harness.DialGearman(t, b)
	handle, err := gearman.Submit(gearmanclient.SubmitJobBg, "progressing", "", "x")
	check(t, err)
	job := fetchSoon(t, fkt, "progressing")
	check(t, fkt.TrackSet(job.Jid, 25, "a quarter", nil))
	equal(t, "TRACK SET read by GET_STATUS", jobStatus(t, gearman, handle), "1 1 25 100")

	tracked := fktJob("progressing", 1)
	tracked.SetCustom("track", 1)
	check(t, fkt.Push(tracked))
	check(t, gearman.Send(gearmanclient.CanDo, "progressing"))
	h, _, _, _, err := gearman.Grab(harness.Patience)
	check(t, err)
	check(t, gearman.Send(gearmanclient.WorkStatus, h, "1", "4"))
	equal(t, "asked after it", jobStatus(t, gearman, h), "1 1 1 4")
	track, err := fkt.TrackGet(tracked.Jid)
	check(t, err)
	equal(t, "WORK_STATUS read by TRACK GET", fmt.Sprint(track.State, track.Percent), "working25")
}

func TestFaktoryBatchRunsCallbacks(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	c := dialFaktory(t, b)
	batch := faktory.NewBatch(c)
	batch.Description = "three jobs"
	batch.Complete = fktJob("callbacks", "complete")
	batch.Success = fktJob("callbacks", "success")
	check(t, batch.Jobs(func() error {
		for i := range 3 {
			if err := batch.Push(fktJob("batched", i)); err != nil {
				return err
			}
		}
		return nil
	}))
	status := func() *faktory.BatchStatus {
		t.Helper()
		s, err := c.BatchStatus(batch.Bid)
		check(t, err)
		return s
	}
	s := status()
	equal(t, "status", fmt.Sprint(s.Total, s.Pending, s.Failed, " ", s.Description), "3 3 0 three jobs")
	check(t, c.Ack(fetchSoon(t, c, "batched").Jid))
	failed, last := fetchSoon(t, c, "batched"), fetchSoon(t, c, "batched")
	check(t, c.Fail(failed.Jid, fmt.Errorf("it broke"), nil))

	b.Crash() // counters and callbacks are durable like jobs
	b.Restart()
	c = dialFaktory(t, b)
	s = status()
	equal(t, "pending and failed after a kill", fmt.Sprint(s.Pending, s.Failed), "2 1")
	check(t, c.Ack(last.Jid))
	complete := fetchSoon(t, c, "callbacks") // every job has been executed once
	equal(t, "first callback", fmt.Sprint(complete.Args), "[complete]")
	bid, _ := complete.GetCustom("_bid")
	equal(t, "_bid", fmt.Sprint(bid), batch.Bid)
	check(t, c.Ack(complete.Jid))
	_, err := c.Generic(`MUTATE {"cmd":"requeue","target":"retries"}`)
	check(t, err)
	check(t, c.Ack(fetchSoon(t, c, "batched").Jid))
	success := fetchSoon(t, c, "callbacks")
	equal(t, "second callback", fmt.Sprint(success.Args), "[success]")
	check(t, c.Ack(success.Jid))
}

func TestFaktoryNestedBatchesWaitForTheirChildren(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	c := dialFaktory(t, b)
	parent := faktory.NewBatch(c)
	parent.Success = fktJob("callbacks", "parent")
	var child *faktory.Batch
	check(t, parent.Jobs(func() error {
		if err := parent.Push(fktJob("nested", "parent's job")); err != nil {
			return err
		}
		child = faktory.NewBatch(c)
		child.ParentBid = parent.Bid
		child.Success = fktJob("callbacks", "child")
		return child.Jobs(func() error { return child.Push(fktJob("nested", "child's job")) })
	}))
	check(t, c.Ack(fetchSoon(t, c, "nested").Jid))
	none, err := c.Fetch("callbacks")
	check(t, err)
	equal(t, "callback before the child is done", none == nil, true)
	check(t, c.Ack(fetchSoon(t, c, "nested").Jid))
	for _, want := range []string{"[child]", "[parent]"} {
		callback := fetchSoon(t, c, "callbacks")
		equal(t, "callback", fmt.Sprint(callback.Args), want)
		check(t, c.Ack(callback.Jid))
	}
}

func TestEmptyBatchFiresOnCommit(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	c := dialFaktory(t, b)
	batch := faktory.NewBatch(c)
	batch.Success = fktJob("callbacks", "success")
	check(t, batch.Jobs(func() error { return nil }))
	equal(t, "callback", fmt.Sprint(fetchSoon(t, c, "callbacks").Args), "[success]")
	if _, err := c.BatchStatus("b-no-such-batch"); err == nil || !strings.Contains(err.Error(), "no such batch") {
		t.Errorf("status of an unknown batch: %v", err)
	}
}

func TestFaktoryFlushRemovesBatches(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	c := dialFaktory(t, b)
	batch := faktory.NewBatch(c)
	batch.Success, batch.Complete = fktJob("callbacks", "success"), fktJob("callbacks", "complete")
	check(t, batch.Jobs(func() error { return batch.Push(fktJob("flushed")) }))
	open := faktory.NewBatch(c)
	open.ParentBid, open.Success = batch.Bid, fktJob("callbacks", "child")
	_, err := c.BatchNew(open)
	check(t, err)
	check(t, open.Push(fktJob("flushed")))
	check(t, c.Flush())
	gone := func(when string, c *faktory.Client) {
		for _, bid := range []string{batch.Bid, open.Bid} {
			if _, err := c.BatchStatus(bid); err == nil || !strings.Contains(err.Error(), "no such batch "+bid) {
				t.Errorf("%s: status of batch %s: %v", when, bid, err)
			}
		}
		equal(t, when+": enqueued", fktState(t, c).Data.TotalEnqueued, uint64(0))
	}
	gone("at once", c)
	if err := open.Push(fktJob("flushed")); err == nil {
		t.Error("a flushed batch accepts a job")
	}
	b.Crash()
	b.Restart()
	gone("after a crash", dialFaktory(t, b))
}

func TestFaktoryDrainedQueueSurvivesACrash(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	c := dialFaktory(t, b)
	check(t, c.Push(fktJob("drained")))
	check(t, c.Push(fktJob("removed")))
	for _, queue := range []string{"drained", "removed"} {
		check(t, c.Ack(fetchSoon(t, c, queue).Jid))
	}
	check(t, c.RemoveQueues("removed"))
	b.Crash()
	b.Restart()
	equal(t, "queues", fmt.Sprint(fktState(t, dialFaktory(t, b)).Data.Queues), "map[drained:0]")
}

func TestFaktoryThrottleAppliesToAllWorkers(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Config: "[throttles]\nnarrow = {concurrency = 2, timeout = 60}\n"})
	c, wq := dialFaktory(t, b), harness.DialWorkq(t, b)
	for i := range 4 {
		check(t, c.Push(fktJob("narrow", i)))
	}
	first := fetchSoon(t, c, "narrow")
	_, err := wq.Lease(0, "narrow")
	check(t, err)
	none, err := c.Fetch("narrow")
	check(t, err)
	equal(t, "a third at once", none == nil, true)
	if _, err := wq.Lease(0, "narrow"); err == nil {
		t.Error("Workq leased a third job at once")
	}
	check(t, c.Ack(first.Jid))
	fetchSoon(t, c, "narrow")
}

func TestFaktoryMutateFilters(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialFaktory(t, b)
	at := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	jids := map[string]string{}
	for _, kind := range []string{"Apple", "Apricot", "Banana", "Cherry"} {
		job := fktJob("fruit", kind)
		job.Type, job.At = kind, at
		jids[kind] = job.Jid
		check(t, c.Push(job))
	}
	check(t, c.Discard(faktory.Scheduled, faktory.OfType("Banana")))
	awaitSets(t, c, "scheduled 3, dead 0")
	check(t, c.Kill(faktory.Scheduled, faktory.WithJids(jids["Cherry"])))
	awaitSets(t, c, "scheduled 2, dead 1")
	check(t, c.Requeue(faktory.Scheduled, faktory.Matching(`*"Apr*`)))
	awaitSets(t, c, "scheduled 1, dead 1")
	equal(t, "requeued", fetchSoon(t, c, "fruit").Jid, jids["Apricot"])
	check(t, c.Clear(faktory.Scheduled))
	check(t, c.Clear(faktory.Dead))
	awaitSets(t, c, "scheduled 0, dead 0")
}
