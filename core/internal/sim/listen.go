package sim

import (
	"fmt"

	"broker/core"
	"broker/core/engine"
)

// listener subscribes to all events and keeps them until the next crash.
type listener struct {
	id       core.ClientID
	last     uint64 // number of the newest event
	reported []reportedEvent
}

// reportedEvent is the content of an event about a stored job, and the commit that it depends on.
type reportedEvent struct {
	seq    uint64
	kind   core.EventKind
	over   bool
	commit core.Commit
}

// listen starts a listener.
func (w *world) listen() {
	w.listener = listener{id: w.engine.Open(core.ClientOptions{Wake: func() {}}), reported: w.listener.reported}
	w.engine.Do(w.listener.id, []core.Op{&core.Subscribe{Tag: 1, Buffer: 100_000}}, nil)
}

// fetchEvents fetches the events of the listener.
func (w *world) fetchEvents() error {
	l := &w.listener
	for _, r := range w.engine.Do(l.id, nil, nil) {
		if r.Kind != core.EventReply {
			continue
		}
		ev := &r.Event
		if ev.Number != l.last+1 || ev.Dropped != 0 {
			return fmt.Errorf("event %d came after event %d, %d dropped", ev.Number, l.last, ev.Dropped)
		}
		l.last = ev.Number
		p := w.model.jobs[ev.Seq]
		if rests := max(r.Commit, w.engine.Committed()); p != nil && !p.ephemeral && p.made > rests &&
			w.mode == engine.Sync {
			return fmt.Errorf("%v of job %d was reported with commit %d, it was made in commit %d", ev.Kind, ev.Seq,
				rests, p.made)
		}
		if r.Commit != 0 && ev.Seq != 0 {
			l.reported = append(l.reported, reportedEvent{ev.Seq, ev.Kind, ev.Over, r.Commit})
		}
	}
	return nil
}

// checkEvents compares the events delivered up to the newest announced commit with the state recovered after a crash.
func (w *world) checkEvents(committed core.Commit) error {
	ended := map[uint64]bool{}
	for _, t := range w.listener.reported {
		ended[t.seq] = ended[t.seq] || t.over
	}
	for _, t := range w.listener.reported {
		if t.commit > committed {
			continue
		}
		switch i := w.look(t.seq); {
		case t.over && i != nil && i.State.Unfinished() && !w.mayRunAgain(t.seq):
			return fmt.Errorf("the end of job %d was reported with commit %d of %d, and it is %v", t.seq, t.commit,
				committed, i.State)
		case t.kind == core.EventSubmitted && i == nil && !ended[t.seq] && !w.mayHaveEnded(t.seq):
			return fmt.Errorf("job %d was reported as submitted with commit %d of %d, and is lost", t.seq, t.commit,
				committed)
		}
	}
	w.listener.reported = nil
	return nil
}

// mayRunAgain reports whether a job that has ended may be unfinished again: put back or moved from the dead set, or run
// again.
func (w *world) mayRunAgain(seq uint64) bool {
	p := w.model.jobs[seq]
	return p != nil && (p.forced || p.again)
}

// mayHaveEnded reports whether a job may be gone without an event, because it expired or ran out of attempts at the
// start.
func (w *world) mayHaveEnded(seq uint64) bool {
	p := w.model.jobs[seq]
	return p == nil || p.mayEnd || w.model.endsAlone(p) || p.expiresAt != 0
}
