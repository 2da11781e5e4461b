package qless

import (
	"maps"
	"slices"
	"strings"

	"broker/core"
)

// Clients of other protocols may submit, lease, finish and move jobs of the broker. The front-end subscribes to events.
// Before the next command, it compares the jobs of the events with the model and applies the differences.

// eventKinds are the events that may change the model.
var eventKinds = []core.EventKind{
	core.EventSubmitted, core.EventReady, core.EventLeased, core.EventDone, core.EventFailed, core.EventRetrying,
	core.EventDead,
	core.EventCancelled, core.EventMoved, core.EventReleased, core.EventLeaseExpired, core.EventChanged,
	core.EventExpired,
	core.EventQueuePaused, core.EventQueueResumed, core.EventCancelRequested,
}

// eventBuffer limits the events that wait for the next command or tick. If there are more, all jobs are compared.
const eventBuffer = 100_000

// pendingEvents are the jobs and queues that other clients have changed since the last sync.
type pendingEvents struct {
	seqs   []uint64
	ends   map[uint64]core.Event // the last events of jobs
	queues map[string]bool       // paused or resumed
	stops  []uint64              // jobs whose workers should stop
	lost   bool                  // events were dropped
}

// noteEvent records an event for the next sync.
func (f *Frontend) noteEvent(ev *core.Event) {
	n := &f.pending
	n.lost = n.lost || ev.Dropped > 0
	switch {
	case ev.Kind == core.EventQueuePaused || ev.Kind == core.EventQueueResumed:
		n.queues[ev.Queue] = ev.Kind == core.EventQueuePaused
		return
	case ev.Kind == core.EventCancelRequested:
		n.stops = append(n.stops, ev.Seq)
		return
	case f.loading != nil && f.loading.note(f, ev):
		return
	case ev.Over:
		if !f.model.jobs.hasSeq(ev.Seq) {
			delete(n.ends, ev.Seq)
		}
		n.ends[ev.Seq] = *ev
	}
	n.seqs = append(n.seqs, ev.Seq)
}

// markDirty marks a job for comparison with the broker before the next command.
func (f *Frontend) markDirty(seq uint64) {
	if seq != 0 {
		f.pending.seqs = append(f.pending.seqs, seq)
	}
}

// found is the current state of a job in the broker.
type found struct {
	seq  uint64
	info *core.JobInfo // nil: the job does not exist
	end  *core.Event   // how it ended, if that event has arrived
}

// syncAtOnce limits the jobs that one commit updates.
const syncAtOnce = 5000

// sync applies the changes of other clients to the model.
//
// It always sends a cheap operation to the broker first. A command may reply from the model alone, and the reply must
// then wait for the commit of this operation: in a cluster, it proves that this node is still the leader.
func (f *Frontend) sync() {
	f.one(&core.ReadMeta{})
	n := f.pending
	if len(n.seqs) == 0 && len(n.queues) == 0 && len(n.stops) == 0 && !n.lost {
		return
	}
	f.pending = pendingEvents{ends: map[uint64]core.Event{}, queues: map[string]bool{}}
	if n.lost {
		n.seqs = append(n.seqs, f.allSeqs()...)
	}
	slices.Sort(n.seqs)
	n.seqs = slices.Compact(n.seqs)
	f.syncQueues(n.queues)
	for part := range slices.Chunk(n.seqs, syncAtOnce) {
		f.syncJobs(part, n.ends)
		if len(n.seqs) > syncAtOnce {
			f.model.jobs.pack()
		}
	}
	f.askToStop(n.stops)
}

// askToStop sends workers the message that their job is cancelled. They keep the job until they fail it or the lock
// ends.
func (f *Frontend) askToStop(seqs []uint64) {
	for _, seq := range seqs {
		if j := f.model.jobs.bySeq(seq); j != nil && j.worker != "" && !j.gone {
			f.messages.Publish("ql:w:"+j.worker, canceledText(j), &f.client)
		}
	}
}

// syncQueues applies the pauses and resumptions of queues by other clients.
func (f *Frontend) syncQueues(queues map[string]bool) {
	t := f.newSync()
	for _, name := range sortedKeys(queues) {
		if own, ok := strings.CutPrefix(name, f.opts.Namespace); ok {
			t.markPaused(own, queues[name])
		}
	}
	if len(t.names) == 0 {
		return
	}
	if err := t.commit(); err != nil {
		t.rollback()
		f.pending.queues = queues
	}
}

// newSync starts a sync transaction at the latest known time.
func (f *Frontend) newSync() *tx {
	t := f.newTx(max(f.model.lastNow, seconds(f.broker.Now())))
	t.syncing = true
	return t
}

// syncJobs applies the changes of jobs.
func (f *Frontend) syncJobs(seqs []uint64, ends map[uint64]core.Event) {
	all := f.inspect(seqs, ends)
	if len(all) == 0 {
		return
	}
	t := f.newSync()
	for i := range all {
		t.noteBroker(&all[i])
	}
	for i := range all {
		t.syncJob(&all[i])
	}
	if err := t.commit(); err != nil {
		t.rollback()
		f.pending.seqs = append(f.pending.seqs, seqs...)
		for i := range all {
			if end := all[i].end; end != nil {
				f.pending.ends[all[i].seq] = *end
			}
		}
		return
	}
	f.publishAll(t.messages)
}

// allSeqs lists all jobs of the broker, and all jobs that the model expects there.
func (f *Frontend) allSeqs() []uint64 {
	seqs := slices.Collect(maps.Keys(f.model.jobs.jids))
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

// inspect reads jobs from the broker. It leaves out unchanged jobs, and jobs that came and went without being in the
// model.
func (f *Frontend) inspect(among []uint64, ends map[uint64]core.Event) []found {
	var ops []core.Op
	var seqs []uint64
	for _, seq := range among {
		known := f.model.jobs.hasSeq(seq)
		if _, ended := ends[seq]; ended && !known {
			continue
		}
		seqs = append(seqs, seq)
		ops = append(ops, &core.Inspect{Ref: core.Ref{Seq: seq}, Brief: known})
	}
	var all []found
	for at := range slices.Chunk(ops, 1000) {
		for i, r := range f.do(at) {
			one := found{seq: seqs[i], info: r.Info}
			if r.Kind != core.Inspected || r.Info.State == core.Done {
				one.info = nil
			}
			if ev, ended := ends[one.seq]; ended {
				one.end = &ev
			}
			if j := f.model.jobs.bySeq(one.seq); j == nil || one.info == nil || !j.agrees(one.info) {
				all = append(all, one)
			}
		}
		seqs = seqs[len(at):]
	}
	return all
}

// brokerState converts a state of the core to the Qless state for brokerJob.state.
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

// noteBroker records the state of a known job in the broker, before syncJob changes the model.
func (t *tx) noteBroker(n *found) {
	j := t.m.jobs.bySeq(n.seq)
	if j == nil {
		return
	}
	t.edit(j)
	if n.info == nil {
		erase(t, t.m.jobs.jids, n.seq)
		j.broker = brokerJob{}
		return
	}
	b, i := &j.broker, n.info
	own := b.leased && i.State == core.Leased && i.Epoch == b.epoch
	if own {
		return
	}
	b.state, b.queue, b.readyAt, b.leased, b.foreignWorker = brokerState(i.State), i.Queue, i.ReadyAt, false, false
	if i.State == core.Leased {
		b.leased, b.foreignWorker, b.epoch, b.worker = true, true, i.Epoch, ""
	}
}
