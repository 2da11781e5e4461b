package sim

import (
	"fmt"

	"broker/core"
	"broker/core/engine"
	"broker/core/internal/record"
	"broker/core/internal/store"
	"broker/core/internal/store/damagetest"
)

// damage makes the body of a stored job unreadable between two runs of the broker. Such a job must never reach a
// worker, and must not stop other jobs.
func (w *world) damage() error {
	if w.mode == engine.Relaxed || w.tidy {
		return nil
	}
	w.commit(func() {})
	w.model.flushed(w.engine.Committed())
	var p *promise
	for _, seq := range w.model.seqs {
		one := w.model.jobs[seq]
		if n := len(one.bodies); !w.stores(one) || one.damaged || n == 0 ||
			len(one.bodies[n-1].text) <= record.InlineBytes {
			continue
		}
		if i := w.look(seq); i != nil && i.State.Unfinished() {
			p = one
		}
	}
	if p == nil {
		return nil
	}
	committed := w.engine.Committed()
	if err := w.engine.Shutdown(); err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	if err := damagetest.Body(store.Options{Dir: "data", FS: w.disk.FS()}, p.seq); err != nil {
		return fmt.Errorf("damage job %d: %w", p.seq, err)
	}
	w.note("job %d is damaged", p.seq)
	p.damaged = true
	return w.restartAfterCrash(w.disk, committed)
}

// damageShown checks what the broker shows of a job that may be damaged.
func (p *promise) damageShown(i *core.JobInfo) error {
	switch {
	case p.damaged && i.Damage == "":
		return fmt.Errorf("job %d is damaged, and is shown as %+v", p.seq, i)
	case !p.damaged && i.Damage != "":
		return fmt.Errorf("job %d is said to be damaged: %s", p.seq, i.Damage)
	case p.damaged && i.Failure != nil && i.Failure.Type == core.Damaged && i.State.Unfinished() && !p.again &&
		!p.forced:
		return fmt.Errorf("job %d was set aside, and is %v", p.seq, i.State)
	}
	return nil
}
