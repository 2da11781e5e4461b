package remote

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/coretest"
)

// oneAfterTheOther is a world whose leaders commit and fail when the test says so. They wait for the nodes a and b, or
// for those that are given.
func oneAfterTheOther(t *testing.T, leasesFirst bool, nodes ...string) *world {
	t.Helper()
	if len(nodes) == 0 {
		nodes = []string{"a", "b"}
	}
	w := &world{
		t: t, nodes: nodes, disk: coretest.NewDisk(), acked: map[string]bool{}, ended: map[string]int{},
		leasesFirst: leasesFirst, byHand: true,
	}
	w.lead()
	t.Cleanup(func() {
		w.server.Close(canceled())
		w.close()
	})
	return w
}

// link links nodes to the leader, and waits until their clients are served.
func (w *world) link(nodes ...*Broker) {
	w.t.Helper()
	var links []*Uplink
	for _, b := range nodes {
		near, _ := w.dial()
		up, err := b.Dial(near)
		if err != nil {
			w.t.Fatal(err)
		}
		links = append(links, up)
	}
	for _, up := range links {
		<-up.Ready()
	}
}

// linked is a new node that is linked to the leader.
func (w *world) linked(name string) *Broker {
	w.t.Helper()
	b := NewBroker(BrokerOptions{Node: name, Clock: clock.System{}})
	w.t.Cleanup(b.Shut)
	w.link(b)
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
				a, b := w.linked("a"), w.linked("b")
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
				w.link(a, b)
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
		goesOn := func(t *testing.T, failures int) {
			w := oneAfterTheOther(t, false)
			a, b := w.linked("a"), w.linked("b")
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
			for range failures - 1 {
				w.fail(false, 0)
				near, _ := w.dial() // b has not come to this leader before it fails
				if _, err := a.Dial(near); err != nil {
					t.Fatal(err)
				}
				(&leader{t: t}).eventually("a is registered", func() bool { return w.server.haveRegistered([]string{"a"}) })
			}
			w.fail(false, 0)
			w.link(a, b)
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
		}
		t.Run(name, func(t *testing.T) { goesOn(t, 1) })
		t.Run(name+", two failures", func(t *testing.T) { goesOn(t, 2) })
	}
}

// What is given back is not leased at the next leader.
func TestLeaseThatWasGivenBackDoesNotGoOn(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.linked("a")
	producer, first := open(t, a), open(t, a)
	w.told(producer, producer.submit().Commit)
	r := first.do(exclusive(0))[0]
	a.Close(first.id)
	producer.do(&core.Release{Tag: 3, Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch})
	w.fail(false, 0)
	w.link(a)
	if other := producer.do(exclusive(0)); other[0].Kind != core.Assigned {
		t.Errorf("the job is not ready: %+v", other)
	}
}

// A client without a connection learns that nobody knows what it is to be told, and whether anything was done.
func TestClientWithoutAConnectionIsLost(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.linked("a")
	submission := []core.Op{&core.Submit{Tag: 1, Job: &core.Job{Queue: "q", Origin: core.SQS}}}
	open := func() (id core.ClientID, lost chan bool) {
		lost = make(chan bool, 2)
		return a.Open(core.ClientOptions{
			Protocol: core.SQS, Wake: func() {}, Lost: func(unsent bool) { lost <- unsent },
		}), lost
	}
	told, lostTold := open()
	r := a.Do(told, submission, nil)[0]
	a.current.Load().Hangup()
	waits, lostWaits := open()
	replies := make(chan []core.Reply, 1)
	go func() { replies <- a.Do(waits, submission, nil) }()
	(&leader{t: t}).eventually("the operation waits for a leader", func() bool {
		a.mu.RLock()
		defer a.mu.RUnlock()
		c := a.clients[waits]
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.say != nil
	})
	a.Shut()
	_, lostLate := open()
	if all := <-replies; len(all) != 1 || !errors.Is(all[0].Err, core.ErrShutdown) {
		t.Errorf("replies %+v", all)
	}
	if r.Commit <= a.Committed() {
		t.Errorf("commit %d of %d", r.Commit, a.Committed())
	}
	for name, lost := range map[string]bool{
		"with a reply that waits": <-lostTold, "with an operation that no leader has": !<-lostWaits,
		"of a broker that is shut": !<-lostLate,
	} {
		if lost {
			t.Errorf("a client %s is lost in the wrong way", name)
		}
	}
}

// A client of which is not known what it may be told is closed before others, and so this one, are told of commits.
func TestConnectionIsClosedBeforeCommitsAreTold(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.linked("a")
	told := make(chan bool, 2)
	var lost core.Reply
	id := a.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() {}, Close: func() {
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a test
		told <- a.Committed() >= lost.Commit
	}})
	w.told(open(t, a), open(t, a).submit().Commit)
	core.DoOnce(w.engine, core.Internal, &core.Submit{Tag: 1, Job: &core.Job{ID: "b", Queue: "q", Origin: core.Workq}})
	lost = a.Do(id, []core.Op{&core.Inspect{Tag: 2, Ref: core.Ref{ID: "b"}}}, nil)[0]
	if lost.Kind != core.Inspected || lost.Commit <= a.Committed() {
		t.Fatalf("%+v, %d is committed", lost, a.Committed())
	}
	w.fail(false, 0)
	w.link(a)
	if <-told {
		t.Error("the client was told of what is lost")
	}
}

// Jobs that were submitted together are waited for at the next leader too.
func TestOutcomesOfJobsThatWereSubmittedTogetherAreTold(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.linked("a")
	producer := open(t, a)
	submit := func(tag uint64, id string) core.Op {
		return &core.Submit{
			Tag: tag, Job: &core.Job{ID: id, Queue: "q", Origin: core.Workq}, Watch: core.WatchOutcome,
			Deadline: a.Now().Add(time.Hour),
		}
	}
	all := producer.do(&core.Atomic{Tag: 9, Ops: []core.Op{submit(1, "x"), submit(2, "y")}})
	w.told(producer, all[0].Commit)
	twice := []core.Op{submit(3, "z"), submit(4, "x")}
	if refused := producer.do(&core.Atomic{Tag: 9, Ops: twice}); refused[0].Err == nil {
		t.Fatal("an id was used twice")
	}
	w.fail(false, 0)
	w.link(a)
	for range 2 {
		r := open(t, a).do(exclusive(0))[0]
		open(t, a).do(&core.Complete{Tag: 3, Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased})
	}
	ended := map[uint64]bool{}
	for len(ended) < 2 {
		for _, r := range producer.next() {
			ended[r.Tag] = r.Kind == core.Ended
		}
	}
	if !ended[1] || !ended[2] {
		t.Errorf("ended: %v", ended)
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
	a := w.linked("a")
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
	w.link(a)
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
			a, b := w.linked("a"), w.linked("b")
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
				w.link(a, b)
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
	a := w.linked("a")
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
	w.link(a)
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
			a, b := w.linked("a"), w.linked("b")
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
			w.link(b)
			if late {
				complete()
			}
			told := w.told(other, end.Commit)
			w.link(a)
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
	a := w.linked("a")
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
	w.link(a)
	if !w.told(client, max(ends[0].Commit, ends[1].Commit)) {
		t.Error("the client is closed")
	}
}

// A lease that waits for a commit, which the next leader has and nobody was told of, is told.
func TestLeaseThatSurvivedUntoldIsTold(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.linked("a")
	producer, worker := open(t, a), open(t, a)
	w.told(producer, producer.submit().Commit)
	w.holds.Store(false)
	r := worker.do(exclusive(0))[0]
	if r.Kind != core.Assigned || r.Commit <= a.Committed() {
		t.Fatalf("leased with %+v, %d is committed", r, a.Committed())
	}
	w.fail(true, 0)
	w.link(a)
	if !w.told(worker, r.Commit) {
		t.Error("the client is closed, and nobody has the job")
	}
}

// A node that comes late gives back a lease that was lost with its leader. Meanwhile, the job is another worker's.
func TestLostLeaseIsNotTakenForTheNext(t *testing.T) {
	for name, first := range map[string]bool{"leases first": true, "leases by the clock": false} {
		t.Run(name, func(t *testing.T) {
			w := oneAfterTheOther(t, first)
			late, b := w.linked("late"), w.linked("b")
			lost, other := open(t, late), open(t, b)
			w.told(other, other.submit().Commit)
			was := lost.do(exclusive(0))[0]
			if was.Kind != core.Assigned {
				t.Fatalf("leased with %+v", was)
			}
			w.fail(false, 0)
			w.link(b)
			now := other.do(exclusive(0))[0]
			if now.Kind != core.Assigned || now.Seq != was.Seq {
				t.Fatalf("leased with %+v, before with %+v", now, was)
			}
			w.link(late)
			core.DoOnce(late, core.Internal, &core.Release{Tag: 1, Ref: core.Ref{Seq: was.Seq}, Epoch: was.Lease.Epoch})
			is := other.do(&core.Inspect{Tag: 3, Ref: core.Ref{Seq: now.Seq}})[0]
			if is.Info == nil || is.Info.State != core.Leased || is.Info.Epoch != now.Lease.Epoch {
				t.Errorf("the job is %+v after the release of a lost lease; the lease was %+v", is.Info, now.Lease)
			}
		})
	}
}

// A job that was pushed to a client, and that the leader has taken back as the client canceled its wait, is not the
// client's at the next leader.
func TestCanceledLeaseDoesNotGoOn(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.linked("a")
	producer, first := open(t, a), open(t, a)
	if all := first.do(exclusive(a.Now().Add(time.Hour))); len(all) != 0 {
		t.Fatalf("leased with %+v", all)
	}
	submitted := producer.submit()
	<-first.woken
	if all := first.do(&core.CancelWaits{}); len(all) != 0 {
		t.Fatalf("canceled with %+v", all)
	}
	w.told(producer, submitted.Commit)
	w.fail(false, 0)
	w.link(a)
	if other := producer.do(exclusive(0)); other[0].Kind != core.Assigned {
		t.Errorf("the job is not ready: %+v", other)
	}
	if first.isClosed() {
		t.Error("the client is closed")
	}
}

// A leader that is replaced has stopped before its links end. What it cannot do any more is done by the next one.
func TestReplacedLeaderDoesNotTellClientsThatItHasStopped(t *testing.T) {
	w := oneAfterTheOther(t, false)
	a := w.linked("a")
	producer, waiter := open(t, a), open(t, a)
	if got := waiter.do(exclusive(a.Now().Add(time.Hour))); len(got) != 0 {
		t.Fatalf("the waiter has %+v", got)
	}
	w.engine.Abandon()
	submitted := make(chan []core.Reply, 1)
	go func() {
		job := &core.Job{ID: "a", Queue: "q", Origin: core.Workq}
		submitted <- producer.do(&core.Submit{Tag: 1, Job: job})
	}()
	time.Sleep(20 * time.Millisecond) //nolint:forbidigo // a test
	w.fail(false, 0)
	w.link(a)
	if got := <-submitted; len(got) != 1 || got[0].Kind != core.Submitted {
		t.Fatalf("the submission is answered with %+v", got)
	}
	if got := waiter.next(); len(got) != 1 || got[0].Kind != core.Assigned {
		t.Errorf("the waiter got %+v", got)
	}
}

// A job whose end was lost with its leader, and was asked again, has ended: the worker's connection is not closed for a
// lease that the leader after that does not know.
func TestLeaseWhoseEndWasAskedAgainIsOver(t *testing.T) {
	for name, holder := range map[string]core.Holder{
		"of the connection": core.HeldByConn, "exclusive": core.HeldByNobody,
	} {
		for _, ephemeral := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ephemeral %t", name, ephemeral), func(t *testing.T) {
				w := oneAfterTheOther(t, false)
				a, b := w.linked("a"), w.linked("b")
				worker, client := open(t, a), open(t, b)
				job := &core.Job{ID: "b", Queue: "q", Origin: core.Workq, Ephemeral: ephemeral}
				w.told(client, client.do(&core.Submit{Tag: 1, Job: job, Watch: core.WatchStream})[0].Commit)
				lease := exclusive(a.Now().Add(time.Hour))
				lease.Holder = holder
				leased := worker.do(lease)[0]
				w.told(worker, leased.Commit)
				end := &core.Complete{Tag: 3, Ref: core.Ref{Seq: leased.Seq}}
				if holder != core.HeldByConn {
					end.Authority = core.ByLeased
				}
				done := worker.do(end)[0]
				if done.Kind != core.Accepted {
					t.Fatalf("completed with %+v", done)
				}
				for i := range 2 {
					w.fail(false, 0)
					w.link(a, b)
					other := &core.Job{ID: fmt.Sprint(i), Queue: "other", Origin: core.Workq}
					newest := open(t, a).do(&core.Submit{Tag: 1, Job: other})[0].Commit
					if !w.told(worker, max(done.Commit, newest)) {
						t.Fatal("the worker's connection is closed")
					}
				}
			})
		}
	}
}
