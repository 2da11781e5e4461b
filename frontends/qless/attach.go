package qless

import (
	"slices"

	"broker/core"
)

// attachAtOnce limits the open jobs while the front-end starts.
const attachAtOnce = 1000

// attach finds the broker's job for each loaded job, and updates the model where they differ.
func (f *Frontend) attach() error {
	f.loading.attaching, f.pending.lost = true, false // all jobs are listed now
	cursor := uint64(0)
	for {
		r, err := f.page(&core.ListJobs{Cursor: cursor, Limit: attachAtOnce, NoBody: true})
		if err != nil {
			return err
		}
		for i := range r.Jobs {
			f.attachJob(&r.Jobs[i])
		}
		f.model.jobs.pack()
		if len(f.pending.seqs) > eventBuffer {
			f.sync()
		}
		if cursor = r.Cursor; cursor == 0 {
			break
		}
	}
	f.endMissing()
	f.sync()
	for _, q := range f.model.queues {
		for _, jid := range q.sets[lockSet].slice(0, -1, false) {
			f.followJob(f.model.jobs.get(jid))
		}
		f.model.jobs.pack()
	}
	if f.broker.Stopped() {
		return errStopped
	}
	return nil
}

// attachJob records the broker's state of a job. If the job is unknown or different, sync compares it later.
func (f *Frontend) attachJob(info *core.JobInfo) {
	if info.Job == nil {
		return
	}
	jid := own(info.Job.Identity()) // the table keeps it, and it is part of the job's record
	seen := brokerJob{
		seq: info.Seq, state: brokerState(info.State), queue: info.Queue, readyAt: info.ReadyAt,
		priority: info.Priority,
		leased:   info.State == core.Leased,
	}
	if f.model.jobs.attach(jid, &seen) {
		return
	}
	j := f.model.jobs.get(jid)
	if j == nil {
		f.markDirty(info.Seq)
		return
	}
	seen.after, seen.foreignWorker = j.dependencies, j.broker.foreignWorker && seen.leased
	if seen.leased {
		seen.epoch, seen.worker = info.Epoch, info.Worker
	}
	j.broker, j.changed = seen, true
	f.model.jobs.jids[info.Seq] = j.jid
	if !j.agrees(info) {
		f.markDirty(info.Seq)
	}
}

// agrees reports whether the job in the broker equals the last known state, and whether the state in the model matches
// it.
func (j *job) agrees(i *core.JobInfo) bool {
	b := &j.broker
	if i.Priority != b.priority || i.Queue != b.queue || brokerState(i.State) != b.state ||
		b.leased != (i.State == core.Leased) {
		return false
	}
	switch i.State {
	case core.Leased:
		return j.state == running && b.epoch == i.Epoch
	case core.Ready:
		return j.state == waiting || j.state == stalled
	case core.Scheduled, core.Retrying:
		p := j.places[scheduledSet]
		return p.in && instant(p.score) == i.ReadyAt
	case core.Blocked:
		return j.state == depends
	case core.Dead:
		return j.state == failed
	case core.Done, core.Gone:
	}
	return false
}

// endMissing ends the jobs that no longer exist in the broker.
func (f *Frontend) endMissing() {
	missing := f.model.jobs.unattached()
	for part := range slices.Chunk(missing, attachAtOnce) {
		t := f.newSync()
		for _, jid := range part {
			if j := f.model.jobs.get(jid); j != nil {
				t.edit(j)
				t.ended(j, f.loading.endOf(jid))
			}
		}
		if err := t.commit(); err != nil {
			t.rollback()
		}
		f.model.jobs.pack()
	}
}
