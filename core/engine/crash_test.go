package engine_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
)

// cut is a power failure at one write: the content of the disk, and the state acknowledged until then.
type cut struct {
	disk      *storetest.Disk
	committed core.Commit
}

// cutAt sets a power failure at the n-th write from now on, counted from 1. Each block that is not synced by then is
// kept with a probability of keep percent.
func cutAt(disk *storetest.Disk, n, keep int, committed func() core.Commit) func() *cut {
	var mu sync.Mutex
	var c *cut
	rng := rand.New(rand.NewPCG(uint64(n), uint64(keep)))
	disk.Before(func(write bool) error {
		if !write {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			// The promises first: others go on committing while this write is held up.
			promised := committed()
			c = &cut{disk.Crash(rng, keep), promised}
		}
		return nil
	})
	return func() *cut {
		disk.Before(nil)
		mu.Lock()
		defer mu.Unlock()
		return c
	}
}

// TestCrashAtAnyWriteKeepsAcknowledgedJobs plays each story many times, with a power failure at each of its writes in
// turn.
func TestCrashAtAnyWriteKeepsAcknowledgedJobs(t *testing.T) {
	t.Parallel()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				if done, err := crashOnce(t, s, n, []int{0, 100, 40}[n%3]); err != nil {
					t.Fatalf("crash at write %d: %v", n, err)
				} else if done {
					t.Logf("%d writes", n-1)
					return
				}
			}
		})
	}
}

// crashOnce crashes at the n-th write of a story; true: the story has fewer.
func crashOnce(t *testing.T, s story, n, keep int) (bool, error) {
	t.Helper()
	disk, clk := storetest.NewDisk(), coretest.NewClock()
	w := newRecorder(t, disk, clk, nil)
	crashed := cutAt(disk, n, keep, w.Committed)
	s.play(w)
	w.flush()
	c := crashed()
	w.shutdown()
	if c == nil {
		return true, nil
	}
	d := &fixture{t: t, clk: clk, fs: c.disk.FS()}
	d.open(nil)
	defer d.shutdown()
	if err := d.Check(); err != nil {
		return false, err
	}
	if err := w.compare(d, c.committed); err != nil {
		return false, err
	}
	return false, sameAfterRestart(d)
}

// sameAfterRestart checks that another start changes nothing.
func sameAfterRestart(d *fixture) error {
	before := fmt.Sprint(d.sights())
	d.shutdown()
	d.open(nil)
	if after := fmt.Sprint(d.sights()); after != before {
		return fmt.Errorf("another restart changes\n%s\nto\n%s", before, after)
	}
	return d.Check()
}

// TestCrashDuringStartLosesNoAcknowledgedJob simulates a power failure while the store is opened after each story.
func TestCrashDuringStartLosesNoAcknowledgedJob(t *testing.T) {
	t.Parallel()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				disk, clk := storetest.NewDisk(), coretest.NewClock()
				w := newRecorder(t, disk, clk, nil)
				s.play(w)
				w.flush()
				committed := w.Committed()
				torn := disk.Crash(nil, 0) // the process is killed without a shutdown
				w.shutdown()
				crashed := cutAt(torn, n, []int{0, 100}[n%2], func() core.Commit { return committed })
				first := &fixture{t: t, clk: clk, fs: torn.FS()}
				first.open(nil)
				c := crashed()
				first.shutdown()
				if c == nil {
					t.Logf("%d writes", n-1)
					return
				}
				d := &fixture{t: t, clk: clk, fs: c.disk.FS()}
				d.open(nil)
				if err := w.compare(d, committed); err != nil {
					t.Fatalf("crash at write %d of the recovery: %v", n, err)
				}
				d.shutdown()
			}
		})
	}
}

// TestNumbersAreNeverUsedAgain crashes and restarts an engine that has assigned numbers which were not acknowledged.
func TestNumbersAreNeverUsedAgain(t *testing.T) {
	t.Parallel()
	disk, clk := storetest.NewDisk(), coretest.NewClock()
	given := map[uint64]bool{}
	for life := range 12 {
		d := &fixture{t: t, clk: clk, fs: disk.FS()}
		d.open(nil)
		c := d.client(core.Gearman)
		for range 5 {
			var op core.Op = &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}}
			if life%3 == 1 {
				op = &core.OpenBatch{}
			}
			r := d.one(c, op)
			if r.Seq == 0 || given[r.Seq] {
				t.Fatalf("life %d: number %d was given out before", life, r.Seq)
			}
			given[r.Seq] = true
		}
		switch life % 4 {
		case 0: // crash with nothing but the reserved numbers on disk
			next := disk.Crash(nil, 0)
			d.shutdown()
			disk = next
		case 1: // crash in the middle of a commit
			crashed := cutAt(disk, 1, 50, d.Committed)
			d.Flush()
			c := crashed()
			d.shutdown()
			disk = c.disk
		default:
			d.shutdown()
		}
	}
}

// TestRelaxedCrashLosesNoMoreThanTheOpenBatch crashes between two commits with replies that leave at once.
func TestRelaxedCrashLosesNoMoreThanTheOpenBatch(t *testing.T) {
	t.Parallel()
	relaxed := func(o *engine.Options) { o.Durability = engine.Relaxed }
	disk, clk := storetest.NewDisk(), coretest.NewClock()
	w := newRecorder(t, disk, clk, relaxed)
	submit := func() core.Reply {
		return w.one(w.client, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}})
	}
	kept := submit()
	if kept.Commit != 0 {
		t.Fatalf("a reply waits for commit %d", kept.Commit)
	}
	w.flush()
	lost := submit()
	after := disk.Crash(nil, 0)
	w.shutdown()
	d := &fixture{t: t, clk: clk, fs: after.FS()}
	d.open(relaxed)
	defer d.shutdown()
	if r := d.one(d.observer(), &core.Inspect{Ref: core.Ref{Seq: kept.Seq}}); r.Info == nil {
		t.Error("the job of the last commit is lost")
	}
	if r := d.one(d.observer(), &core.Inspect{Ref: core.Ref{Seq: lost.Seq}}); r.Info != nil {
		t.Error("a job came back that was never written: the test shows nothing")
	}
}
