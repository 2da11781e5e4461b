package integration_test

import (
	"fmt"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// tableWorker is a worker that has leased a job.
type tableWorker struct {
	finish func(ok bool) string // returns the reply
	hangup func() error
}

// tableWorkerKind starts a worker of some kind. It returns nil if no job is expected, and there is none.
type tableWorkerKind struct {
	name string
	take func(c *tableCell, must bool) *tableWorker
}

func tableWorkerKinds() []tableWorkerKind {
	return []tableWorkerKind{
		{"Gearman worker", tableLeaseByGearman},
		{"Faktory worker", tableLeaseByFaktory},
		{"Workq worker", tableLeaseByWorkq},
		{"HTTP worker", tableLeaseByHTTP},
	}
}

func tableLeaseByGearman(c *tableCell, must bool) *tableWorker {
	w := harness.DialGearman(c.t, c.b)
	check(c.t, w.Send(gearmanclient.CanDo, c.queue))
	if !must {
		check(c.t, w.Send(gearmanclient.GrabJobUniq))
		_, err := w.Expect(gearmanclient.NoJob, harness.Patience)
		check(c.t, err)
		return nil
	}
	handle, _, unique, body, err := w.Grab(harness.Patience)
	check(c.t, err)
	want := []string{fmt.Sprint(tableHandles, ":", c.row.Seq), c.row.ID, c.body()}
	if c.name == handle { // a Gearman job without a unique id
		want[1] = ""
	}
	equal(c.t, "what the Gearman worker is handed", []string{handle, unique, body}, want)
	return &tableWorker{hangup: w.Close, finish: func(ok bool) string {
		if ok {
			check(c.t, w.Send(gearmanclient.WorkComplete, handle, "done"))
		} else {
			check(c.t, w.Send(gearmanclient.WorkFail, handle))
		}
		check(c.t, w.Send(gearmanclient.EchoReq, "that was all"))
		p, err := w.Read(harness.Patience)
		check(c.t, err)
		if p.Type == gearmanclient.EchoRes {
			return "nothing"
		}
		return "`" + gearmanWords(p) + "`"
	}}
}

// body is the body that a Gearman or Workq worker receives.
func (c *tableCell) body() string {
	if c.origin.isFaktory() {
		return `["hi"]`
	}
	return "hi"
}

func tableLeaseByFaktory(c *tableCell, must bool) *tableWorker {
	w := dialFaktory(c.t, c.b)
	if !must {
		job, err := w.Fetch(c.queue)
		check(c.t, err)
		if job != nil {
			c.t.Fatalf("fetched %v", job)
		}
		return nil
	}
	job := fetchSoon(c.t, w, c.queue)
	equal(c.t, "what the Faktory worker is handed", fmt.Sprint(job.Jid, job.Type, job.Args),
		fmt.Sprint(c.row.ID, c.queue, "[hi]"))
	return &tableWorker{hangup: w.Close, finish: func(ok bool) string {
		if ok {
			c.faktoryOK(fmt.Sprintf(`ACK {"jid":%q,"result":"done"}`, job.Jid))
		} else {
			c.faktoryOK(fmt.Sprintf(`FAIL {"jid":%q,"errtype":"Broken","message":"no way","backtrace":[]}`, job.Jid))
		}
		return "`+OK`"
	}}
}

func tableLeaseByWorkq(c *tableCell, must bool) *tableWorker {
	w := harness.DialWorkq(c.t, c.b)
	if !must {
		_, err := w.Lease(0, c.queue)
		wantIs(c.t, err, workqclient.ErrTimeout)
		return nil
	}
	l, err := w.Lease(harness.Patience, c.queue)
	check(c.t, err)
	equal(c.t, "what the Workq worker is handed", []string{l.ID, l.Name, string(l.Body)},
		[]string{c.row.workqName(), c.queue, c.body()})
	return &tableWorker{hangup: w.Close, finish: func(ok bool) string {
		if ok {
			return workqWords(w.Complete(l.ID, []byte("done")))
		}
		return workqWords(w.Fail(l.ID, []byte("no way")))
	}}
}

// workqWords is the reply line.
func workqWords(err error) string {
	if err == nil {
		return "`+OK`"
	}
	return "`" + err.Error() + "`"
}
