package sim

import (
	"fmt"
	"slices"

	"broker/core"
)

// whenBroken chooses the OnBroken of a new job.
func (w *world) whenBroken(j *core.Job) {
	if !j.Ephemeral && w.rng.IntN(2) == 0 {
		j.OnBroken = core.OnBroken(w.rng.IntN(int(core.BrokenDrops) + 1))
	}
}

// ignores reports whether a job need not wait for another job, because that job or a descendant is or was dead.
func (w *world) ignores(p *promise, i *core.JobInfo) bool {
	if p.onBroken != core.BrokenReleases {
		return false
	}
	pred := w.model.jobs[i.Seq]
	return i.State == core.Dead || pred == nil || pred.again || pred.forced || pred.hadChild
}

// checkBroken checks the jobs that must not wait for dependencies that cannot be done.
func (w *world) checkBroken() error {
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

// brokenByCrash reports whether a job stopped waiting because of a crash: the crash has lost or killed one of its
// dependencies.
func (w *world) brokenByCrash(was, is *core.JobInfo, before, after *snapshot) bool {
	p := w.model.jobs[was.Seq]
	if p == nil || p.onBroken == core.BrokenWaits || was.State != core.Blocked || is.State == core.Blocked {
		return false
	}
	if p.onBroken == core.BrokenFails &&
		(is.State != core.Dead || is.Failure == nil || is.Failure.Type != core.DependencyFailed) {
		return false
	}
	return w.leftBefore(was, before) || w.spentAmong(was.Waiting, before, after, map[uint64]bool{})
}

// spentAmong reports whether a crash has lost or killed one of these jobs or one of their children.
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

// rejoined checks which jobs a job waits for after an Enqueue, and updates the model: a job that is dead because of a
// dependency waits again for those that can still be done, and any other job for none. forced is promise.forced as it
// was before.
func (w *world) rejoined(p *promise, before *core.JobInfo, forced bool) error {
	is, alive := w.look(p.seq), false
	if before.State == core.Dead && before.Failure != nil && before.Failure.Type == core.DependencyFailed && !forced {
		for _, l := range append(links([]uint64{p.parent}, 0), p.after...) {
			i := w.look(l.seq)
			alive = alive ||
				i != nil && i.State != core.Dead && (i.State.Unfinished() || l.seq != p.parent && i.Children > 0)
		}
	}
	switch {
	case is != nil && (is.State == core.Blocked) != alive:
		return fmt.Errorf("job %d was %v, is %v, and something that it waits for can be done: %v", p.seq, before.State,
			is.State, alive)
	case alive:
		p.forced = false
	default:
		p.after, p.parent = nil, 0
	}
	return nil
}
