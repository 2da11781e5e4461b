package sim

import (
	"fmt"

	"broker/core"
)

// window is a key that a submission reserves for a time.
type window struct {
	seq   uint64
	until core.Instant // of the wall clock
	made  core.Commit
}

// windowHolds checks that no job with a reserved key is admitted. If a submission joins an ended job, it must be the
// job that opened the window. It records the window of a new job.
func (w *world) windowHolds(op *core.Submit, r *core.Reply) error {
	j := op.Job
	if j.Unique == core.UniqueNone || j.UniqueKey == "" || r.Kind != core.Submitted {
		return nil
	}
	key := j.Queue + " " + j.UniqueKey
	x, held := w.model.windows[key]
	held = held && x.until > w.clk.most // otherwise it may have ended, if the clock was set back
	switch {
	case held && !r.Existing:
		return fmt.Errorf("job %d was admitted, and job %d holds its key until %d", r.Seq, x.seq, x.until)
	case r.Existing && r.Job != nil && held && r.Seq != x.seq:
		return fmt.Errorf("a submission joined job %d, and job %d holds its key", r.Seq, x.seq)
	case !r.Existing && op.Window != 0:
		w.model.windows[key] = window{r.Seq, op.Window, w.commitOf(*r, true)}
	}
	return nil
}

// windowsAfterCrash forgets windows that may be lost.
func (w *world) windowsAfterCrash(committed core.Commit) {
	for key, x := range w.model.windows {
		if x.made > committed {
			delete(w.model.windows, key)
		}
	}
}

// windowsFlushed is model.flushed for windows.
func (m *model) windowsFlushed(committed core.Commit) {
	for key, x := range m.windows {
		if x.made == soon {
			x.made = committed
			m.windows[key] = x
		}
	}
}
