package qless

import (
	"slices"

	"broker/core"
)

// attachAtOnce is how many jobs are open at a time while the front-end starts.
const attachAtOnce = 1000

// attach finds the broker's jobs of those that were loaded, and takes over what is different.
func (f *Frontend) attach() {
	cursor := uint64(0)
	for {
		r := f.one(&core.ListJobs{Cursor: cursor, Limit: attachAtOnce, NoBody: true})
		for i := range r.Jobs {
			f.attachJob(&r.Jobs[i])
		}
		f.model.jobs.pack()
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
}

// attachJob notes what the broker has of a job. One that is unknown or different is looked at later.
func (f *Frontend) attachJob(info *core.JobInfo) {
	if info.Job == nil {
		return
	}
	jid := info.Job.Identity()
	seen := brokerJob{
		seq: info.Seq, want: brokerState(info.State), queue: info.Queue, readyAt: info.ReadyAt, priority: info.Priority,
		leased: info.State == core.Leased,
	}
	if f.model.jobs.attach(jid, &seen) {
		return
	}
	j := f.model.jobs.get(jid)
	if j == nil {
		f.markDirty(info.Seq)
		return
	}
	seen.after, seen.lent = j.dependencies, j.broker.lent && seen.leased
	if seen.leased {
		seen.epoch, seen.worker = info.Epoch, info.Worker
	}
	j.broker, j.changed = seen, true
	f.model.jobs.jids[info.Seq] = j.jid
	if !j.agrees(info) {
		f.markDirty(info.Seq)
	}
}

// agrees reports whether the broker has a job as it was last known to be, and its state follows from that.
func (j *job) agrees(i *core.JobInfo) bool {
	b := &j.broker
	if i.Priority != b.priority || i.Queue != b.queue || brokerState(i.State) != b.want || b.leased != (i.State == core.Leased) {
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

// endMissing ends the jobs that the broker does not have any more.
func (f *Frontend) endMissing() {
	missing := f.model.jobs.unattached()
	for part := range slices.Chunk(missing, attachAtOnce) {
		t := f.newSync()
		for _, jid := range part {
			if j := f.model.jobs.get(jid); j != nil {
				t.edit(j)
				t.ended(j, nil)
			}
		}
		if err := t.commit(); err != nil {
			t.rollback()
		}
		f.model.jobs.pack()
	}
}
