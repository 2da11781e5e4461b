package qless

import (
	"slices"
	"strings"

	"broker/core"
)

// Jobs of the broker may be submitted, taken, finished and moved by clients of other protocols. The front-end listens to
// events, looks at the jobs that they name before the next command, and takes over what is different.

// eventKinds are the events that may change what Qless clients see.
var eventKinds = []core.EventKind{
	core.EventSubmitted, core.EventReady, core.EventLeased, core.EventDone, core.EventFailed, core.EventRetrying, core.EventDead,
	core.EventCancelled, core.EventMoved, core.EventReleased, core.EventLeaseExpired, core.EventChanged, core.EventExpired,
	core.EventQueuePaused, core.EventQueueResumed,
}

// eventBuffer is how many events may wait for the next command or tick. If more come, all jobs are looked at.
const eventBuffer = 100_000

// news is what is to be looked at.
type news struct {
	seqs   []uint64
	ends   map[uint64]core.Event // the last events of jobs
	queues map[string]bool       // paused or resumed
	lost   bool                  // events were dropped
}

// heard keeps what an event is about.
func (f *Frontend) heard(ev *core.Event) {
	n := &f.news
	n.lost = n.lost || ev.Dropped > 0
	switch {
	case ev.Kind == core.EventQueuePaused || ev.Kind == core.EventQueueResumed:
		n.queues[ev.Queue] = ev.Kind == core.EventQueuePaused
		return
	case ev.Over:
		if f.model.bySeq[ev.Seq] == nil {
			delete(n.ends, ev.Seq)
		}
		n.ends[ev.Seq] = *ev
	}
	n.seqs = append(n.seqs, ev.Seq)
}

// look has a job looked at before the next command.
func (f *Frontend) look(seq uint64) {
	if seq != 0 {
		f.news.seqs = append(f.news.seqs, seq)
	}
}

// found is what the broker says of a job now.
type found struct {
	seq  uint64
	info *core.JobInfo // nil: it is gone
	end  *core.Event   // how it ended, if that was heard
	job  *core.Job
}

// learn takes over what has happened in the broker.
func (f *Frontend) learn() {
	f.do(nil)
	n := f.news
	if len(n.seqs) == 0 && len(n.queues) == 0 && !n.lost {
		return
	}
	f.news = news{ends: map[uint64]core.Event{}, queues: map[string]bool{}}
	if n.lost {
		n.seqs = append(n.seqs, f.allSeqs()...)
	}
	slices.Sort(n.seqs)
	n.seqs = slices.Compact(n.seqs)
	t := f.newTx(max(f.model.lastNow, seconds(f.broker.Now())))
	t.learning = true
	all := f.inspect(n)
	for i := range all {
		t.noteBroker(&all[i])
	}
	for i := range all {
		t.learnJob(&all[i])
	}
	for _, name := range sortedKeys(n.queues) {
		if own, ok := strings.CutPrefix(name, f.opts.Namespace); ok {
			t.markPaused(own, n.queues[name])
		}
	}
	if err := t.commit(); err != nil {
		t.rollback()
		for _, seq := range n.seqs {
			f.look(seq)
		}
		return
	}
	f.messages.publish(t.messages, f.newest)
}

// allSeqs lists all jobs of the broker, and those that it had.
func (f *Frontend) allSeqs() []uint64 {
	seqs := make([]uint64, 0, len(f.model.bySeq))
	for seq := range f.model.bySeq {
		seqs = append(seqs, seq)
	}
	cursor := uint64(0)
	for {
		r := f.one(&core.ListJobs{Cursor: cursor, Limit: 1000, Brief: true})
		for i := range r.Jobs {
			seqs = append(seqs, r.Jobs[i].Seq)
		}
		if cursor = r.Cursor; cursor == 0 {
			return seqs
		}
	}
}

// inspect asks the broker about jobs. One of which nothing was known and that is gone again is left out.
func (f *Frontend) inspect(n news) []found {
	var ops []core.Op
	var seqs []uint64
	for _, seq := range n.seqs {
		known := f.model.bySeq[seq] != nil
		if _, ended := n.ends[seq]; ended && !known {
			continue
		}
		seqs = append(seqs, seq)
		ops = append(ops, &core.Inspect{Ref: core.Ref{Seq: seq}, Brief: known})
	}
	all := make([]found, 0, len(seqs))
	for at := range slices.Chunk(ops, 1000) {
		for i, r := range f.do(at) {
			one := found{seq: seqs[len(all)], info: r.Info, job: r.Job}
			if r.Info != nil && one.job == nil {
				one.job = r.Info.Job
			}
			if r.Kind != core.Inspected || r.Info.State == core.Done {
				one.info = nil
			}
			if ev, ended := n.ends[one.seq]; ended {
				one.end = &ev
			}
			_ = i
			all = append(all, one)
		}
	}
	return all
}

// brokerState is what a state of the broker is in terms of what a job is brought to.
func brokerState(s core.State) string {
	switch s {
	case core.Ready:
		return waiting
	case core.Scheduled, core.Retrying:
		return scheduled
	case core.Blocked:
		return depends
	case core.Leased:
		return running
	case core.Dead:
		return failed
	case core.Done, core.Gone:
	}
	return ""
}

// noteBroker notes what the broker has of a known job, before anything follows from it.
func (t *tx) noteBroker(n *found) {
	j := t.m.bySeq[n.seq]
	if j == nil {
		return
	}
	t.edit(j)
	if n.info == nil {
		delete(t.m.bySeq, n.seq)
		j.broker = brokerJob{}
		return
	}
	b, i := &j.broker, n.info
	own := b.leased && i.State == core.Leased && i.Epoch == b.epoch
	if own {
		return
	}
	b.want, b.queue, b.readyAt, b.leased, b.lent = brokerState(i.State), i.Queue, i.ReadyAt, false, false
	if i.State == core.Leased {
		b.leased, b.lent, b.epoch, b.worker = true, true, i.Epoch, ""
	}
}
