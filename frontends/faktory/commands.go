package faktory

import (
	"encoding/json"
	"errors"
	"fmt"

	"broker/core"
)

// command is how a verb is served.
type command struct {
	run func(s *session, p *pipeline, arg []byte)

	// bare is the error for a line that is a verb only; empty: run decides.
	bare string

	// batched commands use the pipeline. It is flushed before all others, so that replies keep the order of requests.
	batched bool
}

const internalError = "internal error"

// commands by verb. Verbs are case-sensitive.
var commands = map[string]command{
	"PUSH":   {run: (*session).push, bare: internalError, batched: true},
	"PUSHB":  {run: (*session).pushBulk, bare: internalError},
	"FETCH":  {run: (*session).fetchJob, bare: "must call fetch with at least one queue", batched: true},
	"ACK":    {run: (*session).ack, bare: internalError, batched: true},
	"FAIL":   {run: (*session).failJob, bare: internalError, batched: true},
	"BEAT":   {run: (*session).beat, bare: internalError},
	"INFO":   {run: (*session).info},
	"FLUSH":  {run: (*session).flushJobs},
	"END":    {run: (*session).endConnection},
	"MUTATE": {run: (*session).mutate, bare: "invalid format"},
	"QUEUE":  {run: (*session).queue, bare: internalError},
	"BATCH":  {run: (*session).batch, bare: internalError},
	"TRACK":  {run: (*session).track, bare: internalError},
}

// push: PUSH {job}.
func (s *session) push(p *pipeline, arg []byte) {
	err := parseWorkUnit(arg, &p.unit)
	var sub submission
	if err == nil {
		sub, err = s.f.newPushedJob(&p.unit, &s.names, s.f.b.Now())
	}
	if err == nil && (sub.after != nil || sub.parent != "") {
		s.flush()
		err = s.link(&sub)
	}
	if err != nil {
		p.refuse(err.Error())
		return
	}
	p.submit(sub.job)
}

// link finds the jobs that custom.after and custom.parent name. The error is for the client.
func (s *session) link(sub *submission) error {
	for _, jid := range sub.after {
		seq, err := s.find(jid)
		if err != nil {
			return err
		}
		sub.job.After = append(sub.job.After, seq)
	}
	if sub.parent == "" {
		return nil
	}
	seq, err := s.find(sub.parent)
	sub.job.Parent = seq
	return err
}

func (s *session) find(jid string) (uint64, error) {
	r := s.ask(&core.Inspect{Tag: s.nextTag(), Ref: core.Ref{ID: jid}, Brief: true})
	if r.Kind == core.Failed {
		return 0, fmt.Errorf("Job not found %.100s", jid) //nolint:staticcheck // the reference's words
	}
	return r.Info.Seq, nil
}

// pushResult decides how a PUSH is answered. If a job with this jid exists:
//
//   - a dead one is replaced;
//   - an identical one means that the client repeats a PUSH whose reply it lost: success, once the first push is durable;
//   - an identical one that holds a unique lock refuses the push, as in the reference's paid edition;
//   - any other one refuses the push.
func (s *session) pushResult(job *core.Job, r *core.Reply) (core.Commit, error) {
	if r.Kind != core.Failed {
		return r.Commit, nil
	}
	if !errors.Is(r.Err, core.ErrDuplicate) {
		return r.Commit, r.Err
	}
	there := s.ask(&core.Inspect{Tag: s.nextTag(), Ref: core.Ref{Seq: r.Seq}})
	commit := max(r.Commit, there.Commit)
	if there.Kind != core.Inspected {
		return commit, r.Err
	}
	first := inspected(&there)
	switch {
	case there.Info.State == core.Dead:
		return s.replace(job, r.Seq)
	case !sameJob(job, first):
		return commit, r.Err
	case s.holdsUniqueLock(first, there.Info):
		return commit, core.ErrNotUnique
	}
	return commit, nil
}

// holdsUniqueLock reports whether a job holds its unique lock.
func (s *session) holdsUniqueLock(job *core.Job, info *core.JobInfo) bool {
	return job.Unique == core.UniqueRefuse && job.UniqueUntil > s.f.b.Now() && !(job.UniqueStart && info.Attempts > 0)
}

// replace submits a job in place of a dead one with the same jid.
func (s *session) replace(job *core.Job, dead uint64) (core.Commit, error) {
	r := s.ask(&core.Cancel{Tag: s.nextTag(), Ref: core.Ref{Seq: dead}, If: core.InState(core.Dead)})
	if r.Kind == core.Failed {
		return r.Commit, core.ErrDuplicate
	}
	again := *job // the broker owns the first one
	again.Seq = 0
	r = s.ask(&core.Submit{Tag: s.nextTag(), Job: &again})
	if r.Kind == core.Failed {
		return r.Commit, r.Err
	}
	return r.Commit, nil
}

// inspected is the job in a reply to Inspect.
func inspected(r *core.Reply) *core.Job {
	if r.Job != nil {
		return r.Job
	}
	return r.Info.Job
}

// subject names what a refused push is about.
func (f *Frontend) subject(job *core.Job, err error) string {
	switch {
	case errors.Is(err, core.ErrFull), errors.Is(err, core.ErrNoQueue):
		return job.Queue
	case errors.Is(err, core.ErrNoBatch), errors.Is(err, core.ErrBatchState):
		return f.bids.format(job.Batch)
	}
	return job.ID
}

// maxIdleQueues is how long an argument of FETCH a connection keeps for the next one, in bytes.
const maxIdleQueues = 4 << 10

// fetchJob: FETCH q1 q2…. A quiet or terminating worker waits like any other and gets nothing.
func (s *session) fetchJob(p *pipeline, arg []byte) {
	queues := s.queues
	if queues == nil || string(arg) != s.queuesText {
		names, ok := words(arg)
		if !ok {
			p.refuse(tooManyNames)
			return
		}
		for i, name := range names {
			names[i] = s.f.o.Namespace + name
		}
		queues = append([]string{}, names...) // not nil
		if len(arg) <= maxIdleQueues {
			s.queuesText, s.queues = string(arg), queues
		}
	}
	if s.isQuiet() {
		queues = []string{}
	}
	until := s.f.b.Now().Add(fetchFor)
	s.fetch = parkedFetch{tag: p.lease(queues, s.workerID, until), until: until, noQueues: len(queues) == 0}
	s.flush()
}

// ack: ACK {"jid":s}, with a result if the worker has one.
func (s *session) ack(p *pipeline, arg []byte) {
	jid, result, ok := parseAck(arg)
	if !ok {
		p.refuse(fmt.Sprintf("invalid ACK %s", arg[:min(len(arg), maxEcho)])) // the argument may be as long as a job
		return
	}
	p.complete(jid, result)
}

// failJob: FAIL {jid, errtype, message, backtrace[]}.
func (s *session) failJob(p *pipeline, arg []byte) {
	jid, failure, err := parseFail(arg)
	if err != nil {
		p.refuse(err.Error())
		return
	}
	p.fail(jid, failure)
}

// beat: BEAT {wid, current_state?, rss_kb?}. The answer tells a worker to go quiet or to terminate.
func (s *session) beat(_ *pipeline, arg []byte) {
	var beat struct {
		CurrentState string `json:"current_state"`
		WID          string `json:"wid"`
		RSSKB        int64  `json:"rss_kb"`
	}
	if json.Unmarshal(arg, &beat) != nil {
		s.refuse(fmt.Sprintf("invalid BEAT %s", arg))
		return
	}
	state, known := s.f.workers.beat(beat.WID, beat.CurrentState, beat.RSSKB, s.f.b.Now())
	switch {
	case !known:
		s.refuse("unknown worker " + beat.WID)
	case state == Running:
		s.ok(0)
	default:
		s.bulk([]byte(`{"state":"`+state.String()+`"}`), 0)
	}
}

// endConnection: END.
func (s *session) endConnection(*pipeline, []byte) { s.hangUp() }
