package machine

import "broker/core"

// finishedRing remembers the jobs that have ended last. Its memory is reused, so that the end of a job allocates nothing.
type finishedRing struct {
	jobs []finishedJob
	next int // place of the next one
}

// finishedJob is a core.FinishedJob whose texts may be parts of something large: they are copied.
type finishedJob struct {
	core.FinishedJob
	commit core.Commit
	minted bool
	text   []byte // id, type and detail
	ends   [2]int // of id and type
}

// noteFinished remembers a job that has come to its end.
func (m *Machine) noteFinished(h uint32, e *entry, kind core.EventKind, detail string) {
	if e.state == core.Done {
		return // it has ended before, and was kept
	}
	r := &m.finished
	if len(r.jobs) < core.MaxFinished {
		r.jobs = append(r.jobs, finishedJob{})
	}
	f := &r.jobs[r.next]
	r.next = (r.next + 1) % core.MaxFinished
	text := f.text[:0]
	f.minted = e.id == (digest{})
	if !f.minted {
		text = append(text, m.identity(h, e)...)
	}
	f.ends[0] = len(text)
	if e.kind != 0 {
		text = append(text, m.types.names[e.kind]...)
	}
	f.ends[1] = len(text)
	f.text = append(text, core.CutText(detail, 255)...)
	f.FinishedJob = core.FinishedJob{
		Seq: e.seq, Queue: m.queues[e.queue].name, Origin: e.origin, Ephemeral: e.has(ephemeral), Kind: kind, CreatedAt: e.createdAt,
		FinishedAt: m.now, Attempts: e.attempts, Fails: e.fails,
	}
	if e.attempts > 0 {
		f.LeasedAt = e.leasedAt
	}
	f.Protocol, f.Worker, _ = m.causer(m.actor, e, kind)
	if f.commit = 0; !e.has(ephemeral) {
		f.commit = m.promise()
	}
}

// info is the job for others.
func (f *finishedJob) info() core.FinishedJob {
	j := f.FinishedJob
	if text := string(f.text); f.minted {
		j.ID, j.Type, j.Detail = core.MintedID(j.Seq, j.CreatedAt), text[:f.ends[1]], text[f.ends[1]:]
	} else {
		j.ID, j.Type, j.Detail = text[:f.ends[0]], text[f.ends[0]:f.ends[1]], text[f.ends[1]:]
	}
	if j.Type == "" {
		j.Type = j.Queue
	}
	return j
}

func (m *Machine) listFinished(c *client, op *core.ListFinished) {
	ring, skip, limit := &m.finished, op.Offset, pageLimit(op.Limit)
	r := core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{Finished: []core.FinishedJob{}}}
	if op.Ref != (core.Ref{}) {
		limit = 1
	}
	for i := range len(ring.jobs) {
		f := &ring.jobs[(ring.next-1-i+2*core.MaxFinished)%core.MaxFinished]
		if len(r.Finished) == limit {
			break
		}
		if op.Queue != "" && f.Queue != op.Queue || !f.named(op.Ref) {
			continue
		}
		if skip--; skip < 0 {
			r.Finished = append(r.Finished, f.info())
			r.Commit = max(r.Commit, m.pending(f.commit))
		}
	}
	m.reply(c, r)
}

// named reports whether a reference names the job; the zero one names all.
func (f *finishedJob) named(ref core.Ref) bool {
	switch {
	case ref == (core.Ref{}):
		return true
	case ref.Seq != 0:
		return ref.Seq == f.Seq
	case !f.minted:
		return string(f.text[:f.ends[0]]) == ref.ID
	}
	return core.MintedID(f.Seq, f.CreatedAt) == ref.ID
}
