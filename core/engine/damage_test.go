package engine_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"broker/core"
	"broker/core/engine"
	"broker/core/internal/store"
	"broker/core/internal/store/damagetest"
	"broker/core/internal/store/storetest"
)

// damageListener counts reports of damaged jobs.
type damageListener struct {
	core.NopListener
	damaged, failed atomic.Int64
}

func (l *damageListener) JobDamaged(uint64, error) { l.damaged.Add(1) }
func (l *damageListener) StoreFailed(error)        { l.failed.Add(1) }

// A job whose body cannot be read moves to the dead set when a worker requests it. Other jobs run, before and after a
// restart.
func TestDamagedBodyStopsNoOtherJob(t *testing.T) {
	t.Parallel()
	listener := &damageListener{}
	disk := storetest.NewDisk()
	change := func(o *engine.Options) { o.FS, o.Listener = disk.FS(), listener }
	d := setup(t, change)
	c := d.client(core.Faktory)
	var seqs []uint64
	for range 3 {
		r := d.one(c, &core.Submit{Job: &core.Job{
			Queue: "q", Body: []byte(strings.Repeat("x", 10_000)), Origin: core.Faktory, MaxFails: 5,
		}})
		seqs = append(seqs, r.Seq)
	}
	d.Flush()
	d.shutdown()
	for _, seq := range seqs[:2] {
		if err := damagetest.Body(store.Options{Dir: "data", FS: disk.FS()}, seq); err != nil {
			t.Fatal(err)
		}
	}
	d.open(change)
	c = d.client(core.Faktory)
	if i := d.one(c, &core.Inspect{Ref: core.Ref{Seq: seqs[0]}}).Info; i == nil || i.Job == nil ||
		!strings.Contains(i.Damage, "body of job") {
		t.Fatalf("a damaged job is shown as %+v", i)
	}
	for _, i := range d.one(c, &core.ListJobs{Queue: "q", State: core.Ready, Limit: 10}).Jobs {
		if damaged := i.Seq != seqs[2]; i.Job == nil || (i.Damage != "") != damaged {
			t.Errorf("job %d is listed as %+v, damage %q", i.Seq, i.Job, i.Damage)
		}
	}
	priority := int64(3)
	if r := d.one(c, &core.Update{
		Ref: core.Ref{Seq: seqs[0]}, Set: core.JobChange{Priority: &priority},
	}); !errors.Is(r.Err, core.ErrDamaged) {
		t.Errorf("a change is answered %+v", r)
	}
	lease := &core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"}
	for range 2 {
		if r := d.one(c, lease); r.Kind != core.TimedOut {
			t.Fatalf("a lease of a damaged job is answered %+v", r)
		}
	}
	if r := d.one(c, lease); r.Kind != core.Assigned || r.Seq != seqs[2] {
		t.Fatalf("the next lease is answered %+v", r)
	}
	d.Flush()
	if err := d.Check(); err != nil {
		t.Fatal(err)
	}
	d.shutdown()
	d.open(change)
	c = d.client(core.Faktory)
	for _, seq := range seqs[:2] {
		i := d.one(c, &core.Inspect{Ref: core.Ref{Seq: seq}}).Info
		if i == nil || i.State != core.Dead || i.Failure == nil || i.Failure.Type != core.Damaged ||
			i.Failure.Message == "" || i.Damage == "" {
			t.Errorf("job %d is %+v", seq, i)
		}
	}
	if d.Stopped() || listener.failed.Load() != 0 || listener.damaged.Load() != 4 { // each of two engines reports two
		t.Errorf("stopped %v, %d failures, %d reports", d.Stopped(), listener.failed.Load(), listener.damaged.Load())
	}
	d.shutdown()
}
