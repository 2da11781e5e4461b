package integration_test

import (
	"errors"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// TestSuccessorsWaitForTheChildrenOfTheirPredecessor: a Faktory worker runs a Gearman job and submits two children by
// different protocols; a successor waits for the parent. The broker is killed twice meanwhile.
func TestSuccessorsWaitForTheChildrenOfTheirPredecessor(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	d := open(t, b)
	_, err := d.gearman.Submit(gearmanclient.SubmitJobBg, "parents", "", "go")
	check(t, err)
	parent := fetchSoon(t, d.faktory, "parents")

	child := fktJob("children", "faktory")
	child.SetCustom("parent", parent.Jid)
	check(t, d.faktory.Push(child))
	alias := api(t, b, "GET", "/jobs/"+parent.Jid)["alias"].(string) // its id in Workq
	check(t, d.workq.Add(wqJob("children", "workq", "-parent="+alias)))
	after := fktJob("successors", "last")
	after.SetCustom("after", parent.Jid)
	check(t, d.faktory.Push(after))

	b.Crash()
	b.Restart()
	d = open(t, b)
	nothing := func(queue string) {
		t.Helper()
		_, err := d.workq.Lease(0, queue)
		wantIs(t, err, workqclient.ErrTimeout)
	}
	nothing("children") // the parent is still running
	nothing("successors")
	check(t, d.faktory.Ack(parent.Jid)) // the lease survived the restart
	nothing("successors")

	b.Crash()
	b.Restart()
	d = open(t, b)
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "children"))
	handle, _, _, body, err := w.Grab(harness.Patience)
	check(t, err)
	equal(t, "first child", body, `["faktory"]`)
	check(t, w.Send(gearmanclient.WorkComplete, handle, ""))
	l, err := d.workq.Lease(harness.Patience, "children")
	check(t, err)
	equal(t, "second child", string(l.Body), "workq")
	nothing("successors")
	check(t, d.workq.Complete(l.ID, nil))
	last := fetchSoon(t, d.faktory, "successors")
	equal(t, "successor", last.Jid, after.Jid)
	check(t, d.faktory.Ack(last.Jid))
}

// TestBrokenJoinRunsOnceItIsReleased: a join waits for three jobs of three protocols. One of them fails for good: the
// join stays blocked, is shown as broken, and runs once it is released.
func TestBrokenJoinRunsOnceItIsReleased(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	d := open(t, b)
	first, second := wqJob("members", "workq"), fktJob("members", "faktory")
	check(t, d.workq.Add(first))
	zero := 0
	second.Jid, second.Retry = "no-uuid-at-all", &zero
	check(t, d.faktory.Push(second))
	handle, err := d.gearman.Submit(gearmanclient.SubmitJobBg, "members-gearman", "", "gearman")
	check(t, err)
	third, err := d.workq.Lease(harness.Patience, "members-gearman") // returns its Workq id
	check(t, err)

	joins := []workqclient.Job{
		wqJob("joins", "all good", "-after="+first.ID+","+third.ID),
		wqJob("joins", "one fails", "-after="+first.ID+","+second.Jid+","+handle),
	}
	for _, j := range joins {
		check(t, d.workq.Add(j))
	}
	check(t, d.workq.Complete(third.ID, nil))
	for range 2 {
		job := fetchSoon(t, d.faktory, "members")
		if job.Jid == second.Jid {
			check(t, d.faktory.Fail(job.Jid, errors.New("for good"), nil))
			continue
		}
		check(t, d.faktory.Ack(job.Jid))
	}
	l, err := d.workq.Lease(harness.Patience, "joins")
	check(t, err)
	equal(t, "the join that may go", string(l.Body), "all good")
	check(t, d.workq.Complete(l.ID, nil))
	b.Crash()
	b.Restart()
	d = open(t, b)
	_, err = d.workq.Lease(0, "joins")
	wantIs(t, err, workqclient.ErrTimeout)
	held := api(t, b, "GET", "/jobs?state=blocked")["jobs"].([]any)
	equal(t, "blocked jobs", len(held), 1)
	row := held[0].(map[string]any)
	equal(t, "the one", []any{row["id"], row["broken"]}, []any{joins[1].ID, true})
	api(t, b, "POST", "/job-actions?wait=10s", `{"action":"retry","ids":["`+joins[1].ID+`"]}`)
	l, err = d.workq.Lease(harness.Patience, "joins")
	check(t, err)
	equal(t, "released", string(l.Body), "one fails")
}
