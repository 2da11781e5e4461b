package qless

import (
	"errors"
	"fmt"
	"strings"

	"broker/core"
)

// The state is loaded beside clients of other protocols. Their changes arrive as events, which are taken with each
// page, so that their buffer does not overflow. Until the jobs of the broker are listed, an event says only how a job
// has ended.

// errStopped ends a load.
var errStopped = errors.New("stopped while the state was loaded")

// maxEnds limits the jobs whose ends are remembered while the state is loaded. A job beyond it counts as complete.
const maxEnds = 1_000_000

// loading is what a load has learned from events.
type loading struct {
	attaching bool                  // the jobs of the broker are listed
	ends      map[string]core.Event // how jobs have ended, by jid
}

// note records an event. It reports whether that is all to do.
func (l *loading) note(f *Frontend, ev *core.Event) bool {
	if ev.Over && ev.ID != "" && len(l.ends) < maxEnds && strings.HasPrefix(ev.Queue, f.opts.Namespace) {
		l.ends[strings.Clone(ev.ID)] = *ev
	}
	return !l.attaching
}

// endOf returns how a job has ended; nil: before the load, or not known.
func (l *loading) endOf(jid string) *core.Event {
	if ev, known := l.ends[jid]; known {
		return &ev
	}
	return nil
}

// load reads all documents.
func (f *Frontend) load() error {
	after := ""
	for {
		r, err := f.page(&core.ReadDocuments{Prefix: docPrefix, After: after, Limit: 5000})
		if err != nil {
			return fmt.Errorf("read documents behind %q: %w", after, err)
		}
		if len(r.Documents) == 0 {
			return nil
		}
		for _, d := range r.Documents {
			if err := f.model.restore(d.Name, d.Value); err != nil {
				return fmt.Errorf("document %q: %w", d.Name, err)
			}
			after = d.Name
		}
	}
}

// page reads a part of the state.
func (f *Frontend) page(op core.Op) (core.Reply, error) {
	if f.stopping.Load() || f.broker.Stopped() {
		return core.Reply{}, errStopped
	}
	r := f.one(op)
	if r.Err != nil {
		return core.Reply{}, r.Err
	}
	return r, nil
}
