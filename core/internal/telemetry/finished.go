package telemetry

import (
	"cmp"

	"broker/core"
)

// Finished remembers the jobs that ended most recently. It reuses its memory, so the end of a job allocates nothing.
type Finished struct {
	jobs []Ended
	next int // index for the next job
}

// Ended is the place of a job that has ended. The caller of Finished.Next fills it.
type Ended struct {
	core.FinishedJob             // without ID and Detail; Type is empty if it is that of the queue
	Commit           core.Commit // commit that a reply about the job depends on; zero: none
	Minted           bool        // the core created its id

	text    []byte // id and detail, copied because they may be parts of something large
	idBytes int
}

// Next returns the place for the next job. It still has the fields of an older job.
func (x *Finished) Next() *Ended {
	if len(x.jobs) < core.MaxFinished {
		x.jobs = append(x.jobs, Ended{})
	}
	f := &x.jobs[x.next]
	if x.next++; x.next == core.MaxFinished {
		x.next = 0
	}
	return f
}

// SetTexts copies the texts of a job. Most jobs have none.
func (f *Ended) SetTexts(id, detail string) {
	f.text, f.idBytes = f.text[:0], len(id)
	if id != "" || detail != "" {
		f.text = append(append(f.text, id...), detail...)
	}
}

// info returns the job in the form of replies.
func (f *Ended) info() core.FinishedJob {
	j := f.FinishedJob
	j.ID, j.Detail, j.Type = f.id(), string(f.text[f.idBytes:]), cmp.Or(j.Type, j.Queue)
	return j
}

func (f *Ended) id() string {
	if f.Minted {
		return core.MintedID(f.Seq, f.CreatedAt)
	}
	return string(f.text[:f.idBytes])
}

// List returns up to limit jobs, the last one first, and the newest commit that one of them depends on.
func (x *Finished) List(op *core.ListFinished, limit int) (jobs []core.FinishedJob, commit core.Commit) {
	jobs, skip := []core.FinishedJob{}, op.Offset
	if op.Ref != (core.Ref{}) {
		limit = 1
	}
	for i := range len(x.jobs) {
		f := &x.jobs[(x.next-1-i+2*core.MaxFinished)%core.MaxFinished]
		if len(jobs) == limit {
			break
		}
		if op.Queue != "" && f.Queue != op.Queue || !f.named(op.Ref) {
			continue
		}
		if skip--; skip < 0 {
			jobs = append(jobs, f.info())
			commit = max(commit, f.Commit)
		}
	}
	return jobs, commit
}

// named reports whether a reference names the job; the zero Ref names every job.
func (f *Ended) named(ref core.Ref) bool {
	switch {
	case ref == (core.Ref{}):
		return true
	case ref.Seq != 0:
		return ref.Seq == f.Seq
	}
	return f.id() == ref.ID
}
