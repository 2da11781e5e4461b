package engine_test

import (
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/store"
)

// fixture is an engine on a memory disk with a clock that stands still.
type fixture struct {
	*engine.Engine
	t          *testing.T
	clk        *coretest.Clock
	fs         store.FS
	observerID core.ClientID // see observer
}

func setup(t *testing.T, change func(*engine.Options)) *fixture {
	t.Helper()
	d := &fixture{t: t, clk: coretest.NewClock(), fs: coretest.MemoryFS()}
	d.open(change)
	t.Cleanup(func() { d.shutdown() })
	return d
}

func (d *fixture) open(change func(*engine.Options)) {
	d.t.Helper()
	o := engine.Options{Dir: "data", FS: d.fs, Clock: d.clk, Seed: 1, ManualTimers: true, ManualCommits: true}
	if change != nil {
		change(&o)
	}
	e, err := engine.Open(o)
	if err != nil {
		d.t.Fatalf("open: %v", err)
	}
	d.Engine, d.observerID = e, 0
}

func (d *fixture) shutdown() {
	if err := d.Shutdown(); err != nil {
		d.t.Errorf("shutdown: %v", err)
	}
}

// observer is a client that only reads.
func (d *fixture) observer() core.ClientID {
	if d.observerID == 0 {
		d.observerID = d.client(core.Internal)
	}
	return d.observerID
}

func (d *fixture) client(p core.Protocol) core.ClientID {
	return d.Open(core.ClientOptions{Protocol: p, Wake: func() {}})
}

// one does an operation that is answered at once and returns the last reply.
func (d *fixture) one(c core.ClientID, op core.Op) core.Reply {
	d.t.Helper()
	r := d.Do(c, []core.Op{op}, nil)
	if len(r) == 0 {
		d.t.Fatalf("%T: no reply", op)
	}
	return r[len(r)-1]
}

func TestAcknowledgedJobIsThereAfterRestart(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	c := d.client(core.Faktory)
	r := d.one(c, &core.Submit{Job: &core.Job{
		ID: "job-number-1", Queue: "q", Body: []byte("[1]"), Format: core.Args, Origin: core.Faktory,
	}})
	if r.Kind != core.Submitted || r.Commit == 0 {
		t.Fatalf("submit: %+v", r)
	}
	if d.Committed() >= r.Commit {
		t.Fatal("committed before the commit")
	}
	d.Flush()
	if d.Committed() < r.Commit {
		t.Fatalf("committed %d after the flush, want %d", d.Committed(), r.Commit)
	}
	d.shutdown()
	d.open(nil)
	c = d.client(core.Faktory)
	got := d.one(c, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
	if got.Kind != core.Assigned || got.Job == nil || got.Job.ID != "job-number-1" || string(got.Job.Body) != "[1]" {
		t.Fatalf("lease after restart: %+v", got)
	}
	if r := d.one(c,
		&core.Complete{Ref: core.Ref{ID: "job-number-1"}, Authority: core.ByLeased}); r.Kind != core.Accepted {
		t.Fatalf("complete: %+v", r)
	}
	d.shutdown()
	d.open(nil)
	c = d.client(core.Faktory)
	if r := d.one(c,
		&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"}); r.Kind != core.NothingReady {
		t.Fatalf("finished job came back: %+v", r)
	}
}

func TestParkedLeaseGetsTheNextJob(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	worker, client := d.client(core.Workq), d.client(core.Gearman)
	until := d.clk.Now().Add(time.Second)
	if r := d.Do(worker,
		[]core.Op{&core.Lease{Tag: 7, Queues: []string{"q"}, Holder: core.HeldByNobody, Deadline: until}},
		nil); len(r) != 0 {
		t.Fatalf("lease answered at once: %+v", r)
	}
	d.one(client, &core.Submit{Job: &core.Job{Queue: "q", Body: []byte("x"), Origin: core.Gearman}})
	r := d.Do(worker, nil, nil)
	if len(r) != 1 || r[0].Kind != core.Assigned || r[0].Tag != 7 || r[0].Job.Type != "q" {
		t.Fatalf("parked lease got %+v", r)
	}
}

// However often a broker crashes, a lease ends at its time. A lease that has ended while the broker was down ends at
// the start.
func TestLeaseEndsAtItsTimeOverRestarts(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	c := d.client(core.HTTP)
	leased := func(queue string, span time.Duration) uint64 {
		d.one(c, &core.Submit{Job: &core.Job{Queue: queue, LeaseFor: span}})
		return d.one(c, &core.Lease{Queues: []string{queue}, Holder: core.HeldByWorker, Worker: "w"}).Seq
	}
	short, extended := leased("short", 7*time.Second), leased("extended", 7*time.Second)
	d.one(c, &core.Report{
		Ref: core.Ref{Seq: extended}, Authority: core.ByLeased, Heartbeat: true,
		ExtendUntil: d.clk.Now().Add(15 * time.Second),
	})
	d.Flush()
	for at := 1; at <= 16; at++ {
		d.shutdown()
		d.clk.Advance(time.Second)
		d.open(nil)
		d.Tick()
		d.Flush()
		for seq, end := range map[uint64]int{short: 7, extended: 15} {
			want := core.Leased
			if at >= end {
				want = core.Ready
			}
			if i := d.one(d.client(core.HTTP), &core.Inspect{Ref: core.Ref{Seq: seq}}).Info; i.State != want {
				t.Fatalf("after %d s the job leased for %d s is %v", at, end, i.State)
			}
		}
	}
}

// Event loops take a reply that is held behind Woken for one that nothing has woken.
func TestWokenFollowsTheWakeUpsOfACommit(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	during := []core.Commit{}
	c := d.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() { during = append(during, d.Woken()) }})
	for range 2 {
		before := d.Woken()
		r := d.one(c, &core.Submit{Job: &core.Job{Queue: "q", Body: []byte("1")}})
		d.Flush()
		if len(during) != 1 || during[0] != before || d.Woken() != r.Commit {
			t.Fatalf("during the wake-ups of commit %d: %d, after them: %d", r.Commit, during, d.Woken())
		}
		during = during[:0]
	}
}
