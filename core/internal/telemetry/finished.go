package telemetry

import "broker/core"

// Finished remembers the jobs that have ended last. Its memory is reused, so that the end of a job allocates nothing.
type Finished struct {
	jobs []finishedJob
	next int // place of the next one
}

// Ended is a job that has ended.
type Ended struct {
	core.FinishedJob
	Minted bool // it has no ID of its own
	Commit core.Commit
}

// finishedJob is an Ended whose texts may be parts of something large: they are copied.
type finishedJob struct {
	Ended
	text []byte // id, type and detail
	ends [2]int // of id and type
}

// Add remembers a job.
func (x *Finished) Add(j *Ended) {
	if len(x.jobs) < core.MaxFinished {
		x.jobs = append(x.jobs, finishedJob{})
	}
	f := &x.jobs[x.next]
	if x.next++; x.next == core.MaxFinished {
		x.next = 0
	}
	text := append(f.text[:0], j.ID...)
	f.ends[0] = len(text)
	text = append(text, j.Type...)
	f.ends[1] = len(text)
	f.text = append(text, j.Detail...)
	f.Ended = *j
	f.ID, f.Type, f.Detail = "", "", ""
}

// info is the job for replies.
func (f *finishedJob) info() core.FinishedJob {
	j, text := f.FinishedJob, string(f.text)
	j.ID, j.Type, j.Detail = text[:f.ends[0]], text[f.ends[0]:f.ends[1]], text[f.ends[1]:]
	if f.Minted {
		j.ID = core.MintedID(j.Seq, j.CreatedAt)
	}
	if j.Type == "" {
		j.Type = j.Queue
	}
	return j
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

// named reports whether a reference names the job; the zero one names all.
func (f *finishedJob) named(ref core.Ref) bool {
	switch {
	case ref == (core.Ref{}):
		return true
	case ref.Seq != 0:
		return ref.Seq == f.Seq
	case !f.Minted:
		return string(f.text[:f.ends[0]]) == ref.ID
	}
	return core.MintedID(f.Seq, f.CreatedAt) == ref.ID
}
