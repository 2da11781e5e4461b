package sim

import (
	"cmp"
	"fmt"
	"slices"

	"broker/core"
)

// fan makes jobs wait for one job and ends that job, which takes several steps: Options.LinkStep is small. What
// happens before the last step is left to chance: nothing, a commit, a crash, or another operation on the job or on
// one of those that wait for it.
func (w *world) fan() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	w.focus = p
	defer func() { w.focus = nil }()
	for range 3 + w.rng.IntN(6) {
		if err := w.submit(); err != nil {
			return err
		}
	}
	w.note("%d jobs wait for job %d", w.dependentsOf(p.seq), p.seq)
	ends := []func() error{w.control, w.control, w.finish, w.stopFocus}
	if err := ends[w.rng.IntN(len(ends))](); err != nil {
		return err
	}
	if w.isLeft() {
		w.left++
	}
	for range w.rng.IntN(3) {
		next := []func() error{w.flush, w.crash, w.control, w.submit, w.read, w.slowSync}
		if err := next[w.rng.IntN(len(next))](); err != nil {
			return err
		}
		if w.focus = w.model.jobs[p.seq]; w.focus == nil || w.rng.IntN(2) == 0 {
			w.focus = w.anyJob()
		}
		if w.focus == nil {
			return nil
		}
	}
	if w.rng.IntN(3) == 0 {
		return nil // the steps are left to the next act that passes time
	}
	w.engine.Tick()
	return cmp.Or(w.collect(), w.checkLeft())
}

// stopFocus cancels the job in focus.
func (w *world) stopFocus() error { return w.cancelSet(w.focus, core.Condition{}) }

// dependentsOf counts the jobs that wait for a job.
func (w *world) dependentsOf(seq uint64) (n int) {
	for _, s := range w.model.seqs {
		if i := w.look(s); i != nil && slices.Contains(i.Waiting, seq) {
			n++
		}
	}
	return n
}

// isLeft reports whether a job still waits for a job that has ended.
func (w *world) isLeft() bool { return w.checkLeft() != nil }

// checkLeft checks, after all steps, that no job waits for a job that has ended, or must not wait because a job is
// dead.
func (w *world) checkLeft() error {
	for _, seq := range w.model.seqs {
		i := w.look(seq)
		if i == nil || i.State != core.Blocked {
			continue
		}
		for _, on := range i.Waiting {
			switch pred := w.look(on); {
			case pred == nil:
				return fmt.Errorf("job %d waits for job %d, which is gone", seq, on)
			case pred.State == core.Done && (pred.Children == 0 || w.model.jobs[seq].parent == on):
				return fmt.Errorf("job %d waits for job %d, which is done", seq, on)
			case pred.State == core.Dead && w.model.jobs[seq].onBroken != core.BrokenWaits:
				return fmt.Errorf("job %d waits for job %d, which is dead", seq, on)
			}
		}
	}
	return nil
}

// leftBefore reports whether a job in a snapshot waited for a job that had ended, had died or had a dead descendant: a
// start does the steps that were left.
func (w *world) leftBefore(was *core.JobInfo, before *snapshot) bool {
	return was.State == core.Blocked && slices.ContainsFunc(was.Waiting, func(seq uint64) bool {
		pred, there := before.jobs[seq]
		return !there || !pred.State.Unfinished() || w.deadBelow(seq, before)
	})
}

// deadBelow reports whether a child of a job, or a descendant, is dead in a snapshot.
func (w *world) deadBelow(seq uint64, s *snapshot) bool {
	for _, child := range w.model.seqs {
		if child <= seq || w.model.jobs[child].parent != seq {
			continue
		}
		if s.jobs[child].State == core.Dead || w.deadBelow(child, s) {
			return true
		}
	}
	return false
}
