package sim

import (
	"fmt"
	"slices"

	"broker/core"
)

// whenBroken chooses what becomes of a new job when one that it waits for cannot be done.
func (w *world) whenBroken(j *core.Job) {
	if !j.Ephemeral && w.rng.IntN(2) == 0 {
		j.OnBroken = core.OnBroken(w.rng.IntN(int(core.BrokenDrops) + 1)) //nolint:gosec // small
	}
}

// ignores reports whether a job need not wait for another one, because that one is dead or was.
func (w *world) ignores(p *promise, i *core.JobInfo) bool {
	if p.onBroken != core.BrokenReleases {
		return false
	}
	pred := w.model.jobs[i.Seq]
	return i.State == core.Dead || pred == nil || pred.again || pred.forced
}

// decidedRightly checks the jobs that do not want to wait for what cannot be done.
func (w *world) decidedRightly() error {
	for _, seq := range w.model.seqs {
		p := w.model.jobs[seq]
		i := w.look(seq)
		switch {
		case i == nil:
		case i.Failure != nil && i.Failure.Type == core.DependencyFailed && p.onBroken != core.BrokenFails:
			return fmt.Errorf("job %d has failed with what it waits for, and did not ask for that", seq)
		case p.onBroken == core.BrokenWaits || i.State != core.Blocked:
		case i.Broken:
			return fmt.Errorf("job %d is broken, and was not to wait then", seq)
		case slices.ContainsFunc(i.Waiting, w.isDead):
			return fmt.Errorf("job %d waits for jobs %v, one of which is dead", seq, i.Waiting)
		}
	}
	return nil
}

func (w *world) isDead(seq uint64) bool {
	i := w.look(seq)
	return i != nil && i.State == core.Dead
}

// brokenByCrash reports whether a job does not wait any more since a crash, because one that it waited for is lost or has died of it.
func (w *world) brokenByCrash(was, is *core.JobInfo, before, after *snapshot) bool {
	p := w.model.jobs[was.Seq]
	if p == nil || p.onBroken == core.BrokenWaits || was.State != core.Blocked || is.State == core.Blocked {
		return false
	}
	if p.onBroken == core.BrokenFails && (is.State != core.Dead || is.Failure == nil || is.Failure.Type != core.DependencyFailed) {
		return false
	}
	return w.spentAmong(was.Waiting, before, after, map[uint64]bool{})
}

// spentAmong reports whether one of these jobs, or a child of one, was lost in a crash or has died of it.
func (w *world) spentAmong(seqs []uint64, before, after *snapshot, seen map[uint64]bool) bool {
	for _, seq := range seqs {
		if seen[seq] {
			continue
		}
		seen[seq] = true
		was, is := before.jobs[seq], after.jobs[seq]
		if was.Ephemeral || was.State != is.State && (is.State == core.Dead || !is.State.Unfinished()) {
			return true
		}
		var children []uint64
		for _, child := range w.model.seqs {
			if w.model.jobs[child].parent == seq {
				children = append(children, child)
			}
		}
		if w.spentAmong(children, before, after, seen) {
			return true
		}
	}
	return false
}
