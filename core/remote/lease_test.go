package remote

import (
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/coretest"
)

// oneAfterTheOther is a world whose leaders commit and fail when the test says so.
func oneAfterTheOther(t *testing.T, leasesFirst bool) *world {
	t.Helper()
	w := &world{
		t: t, nodes: []string{"a", "b"}, disk: coretest.NewDisk(), acked: map[string]bool{}, ended: map[string]int{},
		leasesFirst: leasesFirst, byHand: true,
	}
	w.lead()
	t.Cleanup(func() {
		w.server.Close(canceled())
		w.close()
	})
	return w
}

// link links a node to the leader.
func (w *world) link(b *Broker) *Uplink {
	w.t.Helper()
	near, _ := w.dial()
	up, err := b.Dial(near)
	if err != nil {
		w.t.Fatal(err)
	}
	return up
}

func (w *world) node(name string) *Broker {
	b := NewBroker(BrokerOptions{Node: name, Clock: clock.System{}})
	w.t.Cleanup(b.Shut)
	return b
}

// told waits until a client is told of a commit, or its connection is closed, while the leader commits.
func (w *world) told(of *worker, commit core.Commit) bool {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); { //nolint:forbidigo // a test
		select {
		case <-of.closed:
			return false
		case <-time.After(time.Millisecond):
		}
		if of.broker.Committed() >= commit {
			return true
		}
		w.engine.Flush()
	}
	w.t.Fatal("the client is never told")
	return false
}

// exclusive is a lease that does not end with its connection.
func exclusive(until core.Instant) *core.Lease {
	return &core.Lease{Tag: 2, Queues: []string{"q"}, Holder: core.HeldByNobody, LeaseFor: time.Hour, Deadline: until}
}

// A lease that is lost with its leader before it is committed is not told while another client has the job.
func TestLeaseThatIsLostIsNotHeldTwice(t *testing.T) {
	for name, waits := range map[string]bool{"at once": false, "after a wait": true} {
		for _, lease := range []struct {
			name string
			ask  func(core.Instant) *core.Lease
		}{
			{"exclusive", exclusive},
			{"of the connection", func(until core.Instant) *core.Lease {
				op := exclusive(until)
				op.Holder = core.HeldByConn
				return op
			}},
		} {
			t.Run(lease.name+" "+name, func(t *testing.T) {
				w := oneAfterTheOther(t, true)
				a, b := w.node("a"), w.node("b")
				for _, n := range []*Broker{a, b} {
					<-w.link(n).Ready()
				}
				first, second := open(t, a), open(t, b)
				if !waits {
					w.told(second, second.submit().Commit)
				}
				var all []core.Reply
				if all = first.do(lease.ask(a.Now().Add(time.Hour))); waits {
					second.submit()
					all = first.next()
				}
				if len(all) != 1 || all[0].Kind != core.Assigned || all[0].Commit <= a.Committed() {
					t.Fatalf("leased with %+v, %d is committed", all, a.Committed())
				}
				w.fail(false, 0)
				links := []*Uplink{w.link(a), w.link(b)}
				for _, up := range links {
					<-up.Ready()
				}
				other := second.do(lease.ask(0))
				if waits && other[0].Kind == core.NothingReady { // the submission is admitted again
					w.told(second, b.Committed()+1)
				}
				held := 0
				if w.told(first, all[0].Commit) {
					held++
				}
				if other[0].Kind == core.Assigned && w.told(second, other[0].Commit) {
					held++
				}
				if held != 1 {
					t.Errorf("%d clients have the job", held)
				}
			})
		}
	}
}

// A lease whose client was told of it, and has left with its request, is not lost with the leader.
func TestLeaseOfAClientThatHasLeftGoesOn(t *testing.T) {
	for name, end := range map[string]func(c *worker, r core.Reply){
		"leased": func(*worker, core.Reply) {},
		"extended": func(c *worker, r core.Reply) {
			until := r.Lease.LeasedAt.Add(2 * time.Hour)
			c.do(&core.Report{
				Tag: 3, Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased, Heartbeat: true, LeaseUntil: until,
			})
		},
		"completed": func(c *worker, r core.Reply) {
			c.do(&core.Complete{Tag: 3, Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := oneAfterTheOther(t, false)
			a, b := w.node("a"), w.node("b")
			for _, n := range []*Broker{a, b} {
				<-w.link(n).Ready()
			}
			producer, first := open(t, b), open(t, a)
			w.told(producer, producer.submit().Commit)
			r := first.do(exclusive(0))[0]
			if r.Kind != core.Assigned || r.Commit > a.Committed() {
				t.Fatalf("leased with %+v", r)
			}
			a.Close(first.id)
			if !a.InUse() {
				t.Error("the lease needs no leader")
			}
			next := open(t, a)
			end(next, r)
			a.Close(next.id) // nobody was told of what it did
			w.fail(false, 0)
			links := []*Uplink{w.link(a), w.link(b)}
			for _, up := range links {
				<-up.Ready()
			}
			second := open(t, b)
			if other := second.do(exclusive(0)); other[0].Kind != core.NothingReady {
				t.Errorf("the job was leased again: %+v", other)
			}
			found := second.do(&core.Inspect{Tag: 4, Ref: core.Ref{Seq: r.Seq}})[0]
			if found.Kind != core.Inspected || found.Info.State != core.Leased {
				t.Fatalf("the job is %+v", found)
			}
			if until := found.Info.LeaseUntil.Sub(r.Lease.LeasedAt); name == "extended" && until != 2*time.Hour {
				t.Errorf("leased for %v", until)
			}
			w.told(second, second.do(&core.Complete{
				Tag: 5, Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased,
			})[0].Commit)
			(&leader{t: t}).eventually("the lease is stored and needs no leader", func() bool { return !a.InUse() })
		})
	}
}

// What is given back is not leased at the next leader.
func TestLeaseThatWasGivenBackDoesNotGoOn(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.node("a")
	<-w.link(a).Ready()
	producer, first := open(t, a), open(t, a)
	w.told(producer, producer.submit().Commit)
	r := first.do(exclusive(0))[0]
	a.Close(first.id)
	producer.do(&core.Release{Tag: 3, Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch})
	w.fail(false, 0)
	<-w.link(a).Ready()
	if other := producer.do(exclusive(0)); other[0].Kind != core.Assigned {
		t.Errorf("the job is not ready: %+v", other)
	}
}

// A client without a connection learns that nobody knows what it is to be told.
func TestClientWithoutAConnectionIsLost(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.node("a")
	<-w.link(a).Ready()
	var lost atomic.Bool
	id := a.Open(core.ClientOptions{Protocol: core.SQS, Wake: func() {}, Lost: func() { lost.Store(true) }})
	job := &core.Job{Queue: "q", Origin: core.SQS}
	r := a.Do(id, []core.Op{&core.Submit{Tag: 1, Job: job}}, nil)[0]
	a.Shut()
	if r.Commit <= a.Committed() || !lost.Load() {
		t.Errorf("commit %d of %d, lost %v", r.Commit, a.Committed(), lost.Load())
	}
}

// A submission that is lost with its leader comes back with the number and the id that a worker may have been told.
func TestLostSubmissionKeepsItsID(t *testing.T) {
	t.Run("in any order", func(t *testing.T) { loseSubmission(t, &core.Job{Queue: "q", Origin: core.Gearman}) })
	t.Run("in the order of the numbers", func(t *testing.T) { // which is the id of such jobs
		loseSubmission(t, &core.Job{Queue: "q", Origin: core.Beanstalk, SeqOrder: true})
	})
}

func loseSubmission(t *testing.T, job *core.Job) {
	t.Helper()
	w := oneAfterTheOther(t, false)
	a := w.node("a")
	<-w.link(a).Ready()
	client := open(t, a)
	r := client.do(&core.Submit{Tag: 1, Job: job})[0]
	id := func() string {
		found := core.DoOnce(w.engine, core.Internal, &core.Inspect{Tag: 1, Ref: core.Ref{Seq: r.Seq}})[0]
		if found.Kind != core.Inspected {
			t.Fatalf("job %d: %+v", r.Seq, found)
		}
		return core.MintedID(r.Seq, found.Info.CreatedAt)
	}
	before := id()
	time.Sleep(5 * time.Millisecond) //nolint:forbidigo // ids have milliseconds
	w.fail(false, 0)
	<-w.link(a).Ready()
	if now := id(); now != before && !job.SeqOrder {
		t.Errorf("the job is %s, and was %s", now, before)
	}
	if !w.told(client, r.Commit) {
		t.Error("the client is closed")
	}
}

// A lease that its client was told of before it was committed goes on when it is lost with its leader, also one that
// does not end with its connection.
func TestLeaseThatWasToldBeforeItsCommitGoesOn(t *testing.T) {
	for name, holder := range map[string]core.Holder{
		"of the connection": core.HeldByConn, "of a worker": core.HeldByWorker, "exclusive": core.HeldByNobody,
	} {
		t.Run(name, func(t *testing.T) {
			w := oneAfterTheOther(t, false)
			a, b := w.node("a"), w.node("b")
			for _, n := range []*Broker{a, b} {
				<-w.link(n).Ready()
			}
			first, second := open(t, a), open(t, b)
			w.told(second, second.submit().Commit)
			op := exclusive(0)
			if op.Holder = holder; holder == core.HeldByWorker {
				op.Worker = "worker"
			}
			r := first.do(op)[0]
			if r.Kind != core.Assigned || r.Commit > a.Committed() {
				t.Fatalf("leased with %+v, %d is committed", r, a.Committed())
			}
			for range 2 { // it was registered with the second leader, and is lost with it too
				w.fail(false, 0)
				links := []*Uplink{w.link(a), w.link(b)}
				for _, up := range links {
					<-up.Ready()
				}
				if other := second.do(exclusive(0))[0]; other.Kind != core.NothingReady {
					t.Fatalf("another client gets %+v", other)
				}
			}
			done := &core.Complete{Tag: 3, Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased}
			if r := first.do(done)[0]; r.Kind != core.Accepted || !w.told(first, r.Commit) {
				t.Errorf("completed with %+v", r)
			}
		})
	}
}

// A read whose reply depends on what is lost with its leader is answered if the next one says the same; otherwise the
// connection is closed.
func TestReadOfWhatIsLostIsAnsweredIfItIsStillTrue(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.node("a")
	<-w.link(a).Ready()
	producer, reader, other := open(t, a), open(t, a), open(t, a)
	look := func(of *worker, op core.Op) core.Reply {
		r := of.do(op)[0]
		if r.Kind == core.Failed || r.Commit <= a.Committed() {
			t.Fatalf("%+v, %d is committed", r, a.Committed())
		}
		return r
	}
	w.told(producer, producer.submit().Commit)
	job := producer.do(exclusive(0))[0]
	producer.do(&core.Complete{Tag: 3, Ref: core.Ref{Seq: job.Seq}, Authority: core.ByLeased}) // it is gone
	unknown := &core.Job{ID: "lost", Queue: "q", Origin: core.Workq}
	core.DoOnce(w.engine, core.Internal, &core.Submit{Tag: 1, Job: unknown})
	none := look(reader, &core.Find{Tag: 2, Filter: core.Filter{Worker: "w", CancelRequested: true}, Limit: 1})
	lost := look(other, &core.Inspect{Tag: 2, Ref: core.Ref{ID: "lost"}})
	w.fail(false, 0)
	<-w.link(a).Ready()
	if !w.told(reader, none.Commit) {
		t.Error("a client is closed whose reply is still true")
	}
	if w.told(other, lost.Commit) {
		t.Error("a client is told of a job that is lost")
	}
}

// A job is lost with its leader, and also its end, if it has ended. The worker's node comes to the next leader first,
// and then that of the client, whose submission is asked again. A worker that was told of the end would see the job run
// once more.
func TestEndThatIsLostWithItsJobIsNotTold(t *testing.T) {
	for name, late := range map[string]bool{"before the leader fails": false, "after the leader has failed": true} {
		t.Run(name, func(t *testing.T) {
			w := oneAfterTheOther(t, false)
			a, b := w.node("a"), w.node("b")
			for _, n := range []*Broker{a, b} {
				<-w.link(n).Ready()
			}
			producer, other := open(t, a), open(t, b)
			submitted := producer.submit()
			if got := other.do(exclusive(0)); got[0].Kind != core.Assigned {
				t.Fatalf("leased with %+v", got)
			}
			var end core.Reply
			complete := func() {
				end = other.do(&core.Complete{Tag: 3, Ref: core.Ref{Seq: submitted.Seq}, Authority: core.ByLeased})[0]
			}
			if !late {
				if complete(); end.Kind != core.Accepted {
					t.Fatalf("ended with %+v", end)
				}
			}
			w.fail(false, 0)
			<-w.link(b).Ready()
			if late {
				complete()
			}
			told := w.told(other, end.Commit)
			<-w.link(a).Ready()
			if !w.told(producer, submitted.Commit) {
				t.Error("the producer is closed")
			}
			again := open(t, b).do(exclusive(0))
			if again[0].Kind != core.Assigned {
				t.Errorf("the job does not come back: %+v", again)
			}
			if told {
				t.Error("a job whose end was told runs again")
			}
		})
	}
}

// Two operations of a message may have one tag: each gets its own reply again.
func TestLostOperationsOfOneTagKeepTheirReplies(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.node("a")
	<-w.link(a).Ready()
	client := open(t, a)
	w.told(client, client.submit().Commit)
	got := client.do(exclusive(0))
	if got[0].Kind != core.Assigned {
		t.Fatalf("leased with %+v", got)
	}
	ref := core.Ref{Seq: got[0].Seq}
	ends := client.do(
		&core.Complete{Tag: 3, Ref: ref, Authority: core.ByLeased},
		&core.Cancel{Tag: 3, Ref: ref, If: core.InState(core.Ready)},
	)
	if len(ends) != 2 || ends[0].Kind != core.Accepted || ends[1].Kind != core.Failed {
		t.Fatalf("ended with %+v", ends)
	}
	w.fail(false, 0)
	<-w.link(a).Ready()
	if !w.told(client, max(ends[0].Commit, ends[1].Commit)) {
		t.Error("the client is closed")
	}
}
