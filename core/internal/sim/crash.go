package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"broker/core"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
)

var errTorn = errors.New("torn out")

func (w *world) flush() error {
	w.note("flush")
	w.commit(func() {})
	w.model.flushed(w.engine.Committed())
	return nil
}

// slowSync lets clients continue while a batch is being written.
func (w *world) slowSync() error {
	if w.mode == engine.Relaxed {
		return w.flush() // such acknowledgements cannot be distinguished then
	}
	w.note("slow sync")
	var once sync.Once
	var fired atomic.Bool
	var err error
	open := w.openCommit()
	meanwhile := func() {
		acts := []func() error{
			w.submit, w.submit, w.lease, w.lease, w.finish, w.finish, w.control, w.change, w.change, w.atomic, w.await,
			w.batch, w.report, w.reconnect, w.read, w.read, w.settings,
		}
		for range 1 + w.rng.IntN(5) {
			if err == nil {
				err = acts[w.rng.IntN(len(acts))]()
			}
		}
	}
	w.disk.Before(func(write bool) error {
		// otherwise it is a background write, before the batch is sealed
		if write && !fired.Load() && w.openCommit() > open {
			fired.Store(true)
			once.Do(meanwhile)
		}
		return nil
	})
	w.commit(func() { once.Do(func() {}) }) // waits for a commit that runs on another goroutine
	w.disk.Before(nil)
	w.note("slow sync over at commit %d", w.engine.Committed())
	return err
}

// crash simulates a power failure, sometimes during a commit.
func (w *world) crash() error {
	committed, durable, sealed := w.engine.Committed(), w.durable, (*snapshot)(nil)
	var after *storetest.Disk
	keep := w.keep()
	if at := w.rng.IntN(8); at > 0 && !w.tidy {
		t := &trap{at: at, spring: func() error {
			if after == nil {
				after = w.cut(keep)
			}
			return nil
		}}
		sealed = w.snapshot()
		w.disk.Before(t.before)
		w.engine.Flush()
		w.disk.Before(nil)
		if !t.sprung() { // the commit had fewer writes
			committed, durable = w.engine.Committed(), sealed
			w.model.flushed(committed)
		}
	}
	if after == nil {
		after = w.cut(keep)
	}
	w.note("crash at commit %d, %d%% of the rest kept", committed, keep)
	if err := w.restartAfterCrash(after, committed); err != nil {
		return err
	}
	return w.sameAsBefore(durable, sealed)
}

// keep returns the percentage of unsynced data that survives.
func (w *world) keep() int {
	if w.tidy {
		return 100 * w.rng.IntN(2)
	}
	return w.rng.IntN(101)
}

// cut returns the disk after a power failure now. It uses separate random numbers, because their count depends on
// background work of Pebble.
func (w *world) cut(keep int) *storetest.Disk {
	return w.disk.Crash(rand.New(rand.NewPCG(w.seed, uint64(w.number)+1<<32)), keep)
}

// trap makes a write and all later writes fail, on any goroutine: Pebble also writes in the background.
type trap struct {
	at     int // the first write that fails
	spring func() error

	mu     sync.Mutex // guards the fields below and calls of spring
	writes int
	over   bool
}

// before is for Disk.Before.
func (t *trap) before(write bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !write || t.over {
		return nil
	}
	if t.writes++; t.writes >= t.at {
		return t.spring()
	}
	return nil
}

// sprung reports whether a write has failed, and disarms the trap otherwise.
func (t *trap) sprung() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.writes < t.at
	return !t.over
}

// failDisk makes a write fail: the engine must stop, and a restart must find everything that was acknowledged.
func (w *world) failDisk() error {
	if w.tidy {
		return nil
	}
	t := &trap{at: 1 + w.rng.IntN(4), spring: func() error { return errTorn }}
	w.disk.Before(t.before)
	if err := w.submit(); err != nil {
		return err
	}
	w.commit(func() {})
	failed := t.sprung()
	// A failure in the background stops the engine at its next commit.
	for n := 0; failed && !w.engine.Stopped() && n < 20; n++ {
		w.model.flushed(w.engine.Committed())
		if err := w.submit(); err != nil {
			return err
		}
		w.commit(func() {})
	}
	committed := w.engine.Committed()
	w.note("write %d fails %v, stopped %v at commit %d", t.at, failed, w.engine.Stopped(), committed)
	if w.engine.Stopped() != failed {
		return fmt.Errorf("a write has failed %v, and stopped is %v", failed, w.engine.Stopped())
	}
	if !failed {
		w.disk.Before(nil)
		w.model.flushed(committed)
		return nil
	}
	r := w.ask(&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}})
	if !errors.Is(r.Err, core.ErrStopped) {
		return fmt.Errorf("a submission after a failed write is answered %+v", r)
	}
	w.engine.Flush()
	if now := w.engine.Committed(); now != committed {
		return fmt.Errorf("commit %d is announced after a failed write", now)
	}
	if err := w.engine.Check(); err != nil {
		return err
	}
	after := w.cut(w.keep())
	w.disk.Before(nil)
	return w.restartAfterCrash(after, committed)
}

// restartAfterCrash starts an engine on the content of a disk, and compares it with the model. committed is the newest
// announced commit.
func (w *world) restartAfterCrash(disk *storetest.Disk, committed core.Commit) error {
	w.crashes++
	_ = w.engine.Shutdown() // the old engine ends on its own disk, without effect
	w.disk, w.announced = disk, committed
	if err := w.open(); err != nil {
		return err
	}
	if err := w.afterCrash(committed); err != nil {
		return err
	}
	return w.cleanRestart()
}

// cleanRestart restarts without a crash, which must change nothing.
func (w *world) cleanRestart() error {
	before := w.states()
	if err := w.engine.Shutdown(); err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	if w.announced = soon - 1; w.mode == engine.Relaxed {
		w.announced = soon
	}
	w.model.plansFlushed(w.announced)
	if err := w.open(); err != nil {
		return err
	}
	if after := w.states(); after != before {
		return fmt.Errorf("recovery is not idempotent:\n%s\nthen\n%s", before, after)
	}
	return nil
}

func (w *world) states() string {
	var b strings.Builder
	for _, seq := range w.model.seqs {
		if i := w.look(seq); i != nil {
			fmt.Fprintf(&b, "%d:%v/%d/%d ", seq, i.State, i.Attempts, i.Fails)
		}
	}
	for _, number := range w.model.numbers {
		if g := w.ask(&core.InspectBatch{Batch: number}).Batch; g != nil {
			fmt.Fprintf(&b, "batch %+v ", *g)
		}
	}
	return b.String()
}
