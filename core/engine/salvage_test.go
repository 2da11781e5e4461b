package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"broker/core"
	"broker/core/engine"
	"broker/core/internal/store/damagetest"
	"broker/core/internal/store/storetest"
)

// entangled submits jobs of all kinds that refer to each other.
func entangled(d *fixture, rounds int) {
	c := d.client(core.Faktory)
	job := func(n int) *core.Job {
		return &core.Job{
			Queue: fmt.Sprint("q", n%7), Body: fmt.Appendf(nil, `["%032x"]`, rand.Uint64()), Format: core.Args,
			Origin: core.Faktory, MaxFails: 3,
		}
	}
	before := uint64(0)
	for n := range rounds {
		batch := d.one(c, &core.OpenBatch{Complete: job(n), Success: job(n)}).Seq
		for range 3 {
			j := job(n)
			j.Batch = batch
			d.one(c, &core.Submit{Job: j})
		}
		d.one(c, &core.CloseBatch{Batch: batch})
		dependent := job(n)
		if before != 0 {
			dependent.After = []uint64{before}
		}
		before = d.one(c, &core.Submit{Job: dependent}).Seq
		unique := job(n)
		unique.Unique, unique.UniqueKey = core.UniqueCoalesce, fmt.Sprint("key", n)
		d.one(c, &core.Submit{Job: unique, Window: d.clk.Now().Add(time.Hour)})
		kept := job(n)
		kept.RetainFor = time.Hour
		kept.Queue = "kept"
		d.one(c, &core.Submit{Job: kept})
		lease := &core.Lease{Queues: []string{"kept"}, Holder: core.HeldByWorker, Worker: "w"}
		switch r := d.one(c, lease); n % 3 {
		case 0:
			d.one(c, &core.Complete{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone, Result: []byte("done")})
		case 1:
			d.one(c, &core.Fail{
				Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone, Failure: &core.Failure{Message: "broken"},
				Final: true,
			})
		}
		d.Flush()
	}
}

func total(s *core.Stats) (jobs int) {
	for _, n := range s.Jobs {
		jobs += n
	}
	return jobs
}

// A wrong bit loses some jobs, with their batches, dependencies and unique keys. All other jobs run in the salvaged
// store.
func TestSalvagedStoreServesTheRemainingJobs(t *testing.T) {
	t.Parallel()
	disk := storetest.NewDisk()
	change := func(o *engine.Options) { o.FS = disk.FS() }
	d := setup(t, change)
	entangled(d, 300)
	d.shutdown()
	d.open(change) // makes tables of the log
	d.shutdown()
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 8 {
		damaged := disk.Crash(random, 100)
		if err := damagetest.Table(damaged.FS(), "data", round%2, random); err != nil {
			t.Fatal(err)
		}
		v, err := engine.Salvage(t.Context(), "data", "salvaged", damaged.FS(), nil)
		if err != nil || v.Jobs == 0 {
			t.Fatalf("round %d: %+v, %v", round, v, err)
		}
		t.Logf("%q", v.Lost)
		x, err := engine.Inspect(t.Context(), "salvaged", damaged.FS(), nil)
		if err != nil || !x.Sound() || total(x.Stats) != int(v.Jobs) {
			t.Fatalf("round %d: %d jobs copied, %d found, damage %q, %v, %v", round, v.Jobs, total(x.Stats), x.Damage,
				x.Inconsistency, err)
		}
		d.open(func(o *engine.Options) { o.FS, o.Dir = damaged.FS(), "salvaged" })
		c := d.client(core.Faktory)
		for ran := 0; ; ran++ {
			r := d.one(c, &core.Lease{
				Queues: []string{"q0", "q1", "q2", "q3", "q4", "q5", "q6", "kept"}, Holder: core.HeldByWorker,
				Worker: "w",
			})
			if r.Kind != core.Assigned {
				if ran < int(v.Jobs)/2 {
					t.Errorf("round %d: only %d of %d jobs ran, then %+v", round, ran, v.Jobs, r)
				}
				break
			}
			d.one(c, &core.Complete{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone})
			d.Flush()
		}
		if err := d.Check(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		d.shutdown()
	}
	d.open(change)
}
