package workq

import "broker/core"

// Limits of a listing of jobs.
const (
	listStep  = 256 << 10 // output of one step, in bytes; a body may be larger
	maxKept   = 4 << 10   // a body of this size is kept until it is written; a larger one is read anew
	chunkSize = 64 << 10
)

// listing is a reply to "inspect jobs" in progress. Job bodies may be large and on disk. The session reads and writes a
// few at a time, so that other connections get their turn, and continues as the client reads.
type listing struct {
	jobs    []core.JobInfo // not written yet, without large bodies
	commit  core.Commit    // must be durable before the reply is sent
	unsent  []byte         // rest of the current block
	written int            // bytes in this step
}

// answerJobs starts to write a page of jobs. It leaves out jobs that were removed before they were read.
func answerJobs(s *session, b []byte, _ *pending, r *core.Reply) []byte {
	l := &listing{commit: r.Commit}
	for _, info := range r.Jobs {
		if info.Job == nil {
			continue
		}
		if info.BodyBytes > maxKept {
			job := *info.Job
			job.Body, info.Job = nil, &job
		}
		l.jobs = append(l.jobs, info)
	}
	if len(l.jobs) > 0 {
		s.listing = l
		s.Conn.Wake()
	}
	return appendOK(b, len(l.jobs))
}

// proceed writes more of the listing. After EOF it writes the rest at once. Deliver calls it.
func (s *session) proceed() {
	l := s.listing
	l.written = 0
	for s.HalfClosed || l.written < listStep && !s.Conn.Backpressured() {
		if len(l.unsent) == 0 {
			if len(l.jobs) == 0 {
				s.listing = nil
				return
			}
			l.unsent = s.appendJob(nil, s.withBody(&l.jobs[0]))
			l.jobs[0] = core.JobInfo{}
			l.jobs = l.jobs[1:]
		}
		n := min(len(l.unsent), chunkSize)
		out := s.Conn.Out()
		out.Put(append(out.Buf(), l.unsent[:n]...), l.commit)
		l.unsent = l.unsent[n:]
		l.written += n
	}
	if l.written >= listStep {
		s.Conn.Wake()
	}
}

// withBody reads the body of a job whose body was too large to keep. If the job has been removed since, its body is
// lost. The job is then listed with an empty body, because the reply has already announced the number of jobs.
func (s *session) withBody(info *core.JobInfo) *core.JobInfo {
	if len(info.Job.Body) == info.BodyBytes {
		return info
	}
	op := &core.Inspect{Tag: s.NextTag(), Ref: core.Ref{Seq: info.Seq}}
	for _, r := range s.front.broker.Do(s.Client, []core.Op{op}, nil) {
		if r.Kind == core.Inspected && r.Info.Job != nil {
			info.Job.Body = r.Info.Job.Body
			s.listing.commit = max(s.listing.commit, r.Commit)
		}
	}
	return info
}
