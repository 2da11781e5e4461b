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
	f.learn()
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
	j := f.model.jobs.get(info.Job.Identity())
	if j == nil {
		f.look(info.Seq)
		return
	}
	lent := j.broker.lent && info.State == core.Leased
	j.broker = brokerJob{
		seq: info.Seq, lent: lent, want: brokerState(info.State), queue: shared(info.Queue), readyAt: info.ReadyAt,
		after: j.dependencies, priority: info.Priority,
	}
	if info.State == core.Leased {
		j.broker.leased, j.broker.epoch, j.broker.worker = true, info.Epoch, shared(info.Worker)
	}
	j.changed = true
	f.model.jobs.jids[info.Seq] = j.jid
	if !j.agrees(info) {
		f.look(info.Seq)
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
	var missing []string
	for i, jid := range f.model.jobs.all() {
		if j := f.model.jobs.get(jid); j.broker.seq == 0 && j.state != complete && j.state != failed {
			missing = append(missing, jid)
		}
		if i%attachAtOnce == 0 {
			f.model.jobs.pack()
		}
	}
	for part := range slices.Chunk(missing, attachAtOnce) {
		t := f.newLearning()
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
