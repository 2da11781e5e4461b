package integration_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// clients are connections of every protocol to one broker.
type clients struct {
	gearman *gearmanclient.Client
	workq   *workqclient.Client
	faktory *faktory.Client
}

func open(t *testing.T, b *harness.Broker) clients {
	t.Helper()
	return clients{harness.DialGearman(t, b), harness.DialWorkq(t, b), dialFaktory(t, b)}
}

// submitEach submits one job by each protocol to a queue, with a lease.
func (d clients) submitEach(
	t *testing.T, queue string, lease time.Duration,
) (handle string, wq workqclient.Job, fkt *faktory.Job) {
	t.Helper()
	handle, err := d.gearman.Submit(gearmanclient.SubmitJobBg, queue, "", "from gearman")
	check(t, err)
	wq = wqJob(queue, "from workq")
	wq.TTR = lease
	check(t, d.workq.Add(wq))
	fkt = fktJob(queue, "from faktory")
	check(t, d.faktory.Push(fkt))
	return handle, wq, fkt
}

func TestLostGearmanWorkerGivesJobsOfEveryOriginBack(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	d := open(t, b)
	d.submitEach(t, "lost", time.Minute)
	doomed := harness.DialGearman(t, b)
	check(t, doomed.Send(gearmanclient.CanDo, "lost"))
	for range 3 {
		_, _, _, _, err := doomed.Grab(harness.Patience)
		check(t, err)
	}
	awaitStatus(t, b, "lost", "3 3 1")
	check(t, doomed.Close())
	awaitStatus(t, b, "lost", "3 0 0")
	want := []string{"from gearman", "from workq", `["from faktory"]`} // at their original positions
	for _, body := range want {
		l, err := d.workq.Lease(harness.Patience, "lost")
		check(t, err)
		equal(t, "body", string(l.Body), body)
		check(t, d.workq.Complete(l.ID, nil))
	}
	equal(t, "retries", fktState(t, d.faktory).Data.Sets["retries"], uint64(0))
}

func TestLeaseOfTheJobHoldsForWorkersOfEveryProtocol(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	d := open(t, b)
	take := map[string]func(queue string) (finish func() error){
		"gearman": func(queue string) func() error {
			w := harness.DialGearman(t, b)
			check(t, w.Send(gearmanclient.CanDo, queue))
			handle, _, _, _, err := w.Grab(harness.Patience)
			check(t, err)
			return func() error {
				check(t, w.Send(gearmanclient.WorkComplete, handle, "late"))
				p, err := w.Expect(gearmanclient.Error, harness.Patience)
				check(t, err)
				equal(t, "Gearman's refusal", p.Args(2)[0], "JOB_NOT_FOUND")
				return nil
			}
		},
		"faktory": func(queue string) func() error {
			job := fetchSoon(t, d.faktory, queue)
			return func() error { return d.faktory.Ack(job.Jid) } // always +OK
		},
		"workq": func(queue string) func() error {
			l, err := d.workq.Lease(harness.Patience, queue)
			check(t, err)
			return func() error { return d.workq.Complete(l.ID, nil) }
		},
	}
	for protocol, grab := range take {
		queue := "timed-" + protocol
		job := wqJob(queue, "x")
		job.TTR = time.Second
		check(t, d.workq.Add(job))
		late := grab(queue)
		harness.Eventually(t, func() string {
			o, err := d.workq.InspectJob(job.ID)
			check(t, err)
			if o.Value("state") != "3" {
				return protocol + ": state " + o.Value("state")
			}
			return ""
		})
		if protocol != "workq" { // Workq accepts a result from anybody at any time
			check(t, late())
		}
		l, err := d.workq.Lease(harness.Patience, queue)
		check(t, err)
		equal(t, "leased again after "+protocol, l.ID, job.ID)
		check(t, d.workq.Complete(l.ID, []byte("in time")))
		r, err := d.workq.Result(job.ID, 0)
		check(t, err)
		equal(t, "result after "+protocol, string(r.Body), "in time")
	}
}

func TestCancelNotifiesAllWaiters(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	d := open(t, b)

	// A Gearman client waits; Workq deletes.
	waiting := harness.DialGearman(t, b)
	handle, err := waiting.Submit(gearmanclient.SubmitJob, "doomed-1", "", "x")
	check(t, err)
	l, err := d.workq.Lease(harness.Patience, "doomed-1")
	check(t, err)
	check(t, d.workq.Delete(l.ID))
	p, err := waiting.Expect(gearmanclient.WorkFail, harness.Patience)
	check(t, err)
	equal(t, "handle", string(p.Data), handle)

	// A Workq client waits; Gearman cancels, by the handle that its status shows.
	job := wqJob("doomed-2", "x")
	check(t, d.workq.Add(job))
	jobs, err := d.gearman.AdminList("show jobs")
	check(t, err)
	equal(t, "jobs shown", len(jobs), 1)
	answer := make(chan error, 1)
	waiter := harness.DialWorkq(t, b)
	go func() { // ends with the cancel
		_, err := waiter.Result(job.ID, harness.Patience)
		answer <- err
	}()
	var number int
	_, err = fmt.Sscanf(jobs[0][len("H:"):], hostname(jobs[0])+":%d", &number)
	check(t, err)
	reply, err := d.gearman.Admin("cancel job H:" + hostname(jobs[0]) + fmt.Sprintf(":%d", number))
	check(t, err)
	equal(t, "cancel", reply, "OK\r\n")
	wantIs(t, <-answer, workqclient.ErrNotFound)

	// Faktory discards a scheduled Gearman job; Gearman does not list it any more.
	check(t,
		d.gearman.Send(gearmanclient.SubmitJobEpoch, "doomed-3", "", fmt.Sprint(time.Now().Add(time.Hour).Unix()), "x"))
	p, err = d.gearman.Expect(gearmanclient.JobCreated, harness.Patience)
	check(t, err)
	awaitSets(t, d.faktory, "scheduled 1")
	check(t, d.faktory.Discard(faktory.Scheduled, faktory.OfType("doomed-3")))
	awaitSets(t, d.faktory, "scheduled 0")
	equal(t, "status of the discarded", jobStatus(t, d.gearman, string(p.Data)), "0 0 0 0")
}

// hostname is the host part of a handle in show jobs.
func hostname(row string) string {
	var host string
	for i := len("H:"); i < len(row) && row[i] != ':'; i++ {
		host += string(row[i])
	}
	return host
}

func TestJobExpiresInTheHandsOfAWorkerOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	d := open(t, b)
	job, held := workqclient.Job{}, (*faktory.Job)(nil)
	for ttl := time.Second; held == nil; ttl *= 2 { // a job may expire before a slow worker has it
		job = wqJob("mortal", "x")
		job.TTL = ttl
		check(t, d.workq.Add(job))
		var err error
		held, err = d.faktory.Fetch("mortal")
		check(t, err)
	}
	equal(t, "job", held.Jid, job.ID)
	_, err := d.workq.Result(job.ID, harness.Patience)
	wantIs(t, err, workqclient.ErrNotFound)
	check(t, d.faktory.Ack(job.ID)) // late; +OK all the same
	equal(t, "working", fktState(t, d.faktory).Data.Sets["working"], uint64(0))
	if err := d.faktory.Fail(job.ID, errors.New("late"), nil); err == nil {
		t.Error("a FAIL of an expired job was accepted")
	}
}

func TestEpochJobsWaitForWorkersOfEveryProtocol(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	d := open(t, b)
	due := time.Now().Add(2 * time.Second).Truncate(time.Second)
	for queue, at := range map[string]time.Time{"later": due, "much-later": due.Add(time.Hour)} {
		for range 3 {
			check(t, d.gearman.Send(gearmanclient.SubmitJobEpoch, queue, "", fmt.Sprint(at.Unix()), "x"))
			_, err := d.gearman.Expect(gearmanclient.JobCreated, harness.Patience)
			check(t, err)
		}
	}
	equal(t, "status", statusRow(t, b, "much-later"), "3 0 0")
	equal(t, "queue", queueLens(d.workq, "much-later"), "0 3")
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "later"))
	_, _, _, _, err := w.Grab(harness.Patience)
	check(t, err)
	if now := time.Now(); now.Before(due) {
		t.Errorf("handed out %v early", due.Sub(now))
	}
	_, err = d.workq.Lease(harness.Patience, "later")
	check(t, err)
	fetchSoon(t, d.faktory, "later")
}

func TestLinksHoldAcrossProtocolsAndARestart(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	d := open(t, b)
	// first (Workq) → second (Faktory) → third (Workq), each one after the previous one.
	first, second := wqJob("chain", "first"), fktJob("chain", "second")
	check(t, d.workq.Add(first))
	second.SetCustom("after", []string{first.ID})
	second.Jid = newID()
	check(t, d.faktory.Push(second))
	third := wqJob("chain", "third", "-after="+second.Jid)
	check(t, d.workq.Add(third))
	equal(t, "ready", queueLens(d.workq, "chain"), "1 0")

	b.Crash()
	b.Restart()
	d = open(t, b)
	for _, want := range []string{"first", `["second"]`, "third"} {
		w := harness.DialGearman(t, b)
		check(t, w.Send(gearmanclient.CanDo, "chain"))
		handle, _, _, body, err := w.Grab(harness.Patience)
		check(t, err)
		equal(t, "body", body, want)
		equal(t, "ready beside it", queueLens(d.workq, "chain"), "0 0")
		check(t, w.Send(gearmanclient.WorkComplete, handle, ""))
	}
}

func TestJoinWaitsForAllAndAFailingMemberHoldsItBack(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	d := open(t, b)
	left, right := wqJob("members", "left"), wqJob("members", "right")
	check(t, d.workq.Add(left))
	check(t, d.workq.Add(right))
	join := wqJob("join", "join", "-after="+left.ID+","+right.ID)
	check(t, d.workq.Add(join))
	check(t, d.workq.Complete(left.ID, nil))
	_, err := d.workq.Lease(0, "join")
	wantIs(t, err, workqclient.ErrTimeout)
	check(t, d.workq.Fail(right.ID, []byte("no")))
	_, err = d.workq.Lease(0, "join")
	wantIs(t, err, workqclient.ErrTimeout)
	o, err := d.workq.InspectJob(join.ID) // it is blocked, but visible
	check(t, err)
	equal(t, "state", o.Value("state"), "0")
	check(t, d.workq.Delete(join.ID))

	again := wqJob("join", "again", "-after="+left.ID)
	check(t, d.workq.Add(again))
	l, err := d.workq.Lease(0, "join")
	check(t, err)
	equal(t, "after a finished job", l.ID, again.ID)
}
