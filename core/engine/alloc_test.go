package engine_test

import (
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
)

// Allocations of each step of a job's life, without those of the caller. The tests run alone, because allocations of
// other goroutines would count.

// lives has the operations for a batch of jobs, so that the steps do not allocate them.
type lives struct {
	w        *recorder
	worker   core.ClientID
	submits  []core.Op
	jobs     []core.Job
	leases   []core.Op
	finishes []core.Op
	replies  []core.Reply
}

const livesBatch = 64

func newLives(t *testing.T, d engine.Durability) *lives {
	t.Helper()
	l := &lives{w: newRecorder(t, storetest.NewDisk(), coretest.NewClock(),
		func(o *engine.Options) { o.Durability = d })}
	l.worker = l.w.fixture.client(core.Gearman)
	l.w.Do(l.worker, []core.Op{&core.Register{Queue: "q"}}, nil)
	l.jobs = make([]core.Job, livesBatch)
	for i := range livesBatch {
		l.submits = append(l.submits, &core.Submit{Job: &l.jobs[i]})
		l.leases = append(l.leases, &core.Lease{Pick: core.PickByPriority})
		l.finishes = append(l.finishes, &core.Complete{Result: []byte("result")})
	}
	return l
}

// run submits, leases and finishes the batch, and calls between after each step.
func (l *lives) run(t *testing.T, watch core.Watch, between func()) {
	t.Helper()
	for i := range l.jobs {
		l.jobs[i] = core.Job{Queue: "q", Origin: core.Gearman, Ephemeral: watch == core.WatchStream}
		l.submits[i].(*core.Submit).Watch = watch
	}
	l.replies = l.w.Do(l.w.client, l.submits, l.replies[:0])
	between()
	l.replies = l.w.Do(l.worker, l.leases, l.replies[:0])
	between()
	for i := range l.replies {
		if l.replies[i].Kind != core.Assigned {
			t.Fatalf("lease %d: %+v", i, l.replies[i])
		}
		l.finishes[i].(*core.Complete).Ref = core.Ref{Seq: l.replies[i].Seq}
	}
	l.replies = l.w.Do(l.worker, l.finishes, l.replies[:0])
	l.replies = l.w.Do(l.w.client, nil, l.replies[:0])
	l.w.Flush()
}

func TestAllocationsPerJob(t *testing.T) {
	for _, c := range []struct {
		name       string
		durability engine.Durability
		watch      core.Watch
		commit     bool    // between the steps
		most       float64 // a job
	}{
		{"background, in memory", engine.None, core.WatchNone, false, 0.2},
		{"background, in one commit", engine.Sync, core.WatchNone, false, 0.2},
		{"background, each step in a commit of its own", engine.Sync, core.WatchNone, true, 0.4},
		{"foreground", engine.Sync, core.WatchStream, false, 2.2}, // the race detector costs one
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLives(t, c.durability)
			defer l.w.shutdown()
			between := func() {}
			if c.commit {
				between = l.w.Flush
			}
			for range 20 {
				l.run(t, c.watch, between)
			}
			got := testing.AllocsPerRun(50, func() { l.run(t, c.watch, between) }) / livesBatch
			if got > c.most {
				t.Errorf("%.2f allocations a job, want at most %.2f", got, c.most)
			}
			t.Logf("%.2f allocations a job", got)
		})
	}
}
