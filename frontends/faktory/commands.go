package faktory

import (
	"encoding/json"
	"errors"
	"fmt"

	"broker/core"
)

// command describes how a verb is handled.
type command struct {
	run func(s *session, p *pipeline, arg []byte)

	// bare is the error for a line with a verb but no argument; empty: run handles that case.
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
		sub, err = s.front.newPushedJob(&p.unit, &s.names, s.front.broker.Now())
	}
	if err == nil && (sub.after != nil || sub.parent != "") {
		s.Flush()
		err = s.link(&sub)
	}
	if err != nil {
		p.refuse(err.Error())
		return
	}
	p.submit(sub.job)
}

// link finds the jobs that custom.after and custom.parent name. The error is sent to the client.
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
	r := s.ask(&core.Inspect{Tag: s.NextTag(), Ref: core.Ref{ID: jid}, Brief: true})
	if r.Kind == core.Failed {
		return 0, fmt.Errorf("Job not found %.100s", jid) //nolint:staticcheck // the reference server's text
	}
	return r.Info.Seq, nil
}

// subject returns the name that the error for a push mentions: a jid, queue or batch.
func (f *Frontend) subject(job *core.Job, err error) string {
	switch {
	case errors.Is(err, core.ErrFull), errors.Is(err, core.ErrNoQueue):
		return job.Queue
	case errors.Is(err, core.ErrNoBatch), errors.Is(err, core.ErrBatchState):
		return f.bids.format(job.Batch)
	}
	return job.ID
}

// maxIdleQueues is the longest argument of FETCH that a connection caches for the next FETCH, in bytes.
const maxIdleQueues = 4 << 10

// fetchJob: FETCH q1 q2…. A quiet or terminating worker waits as usual but gets no job.
func (s *session) fetchJob(p *pipeline, arg []byte) {
	queues := s.queues
	if queues == nil || string(arg) != s.queuesText {
		names, ok := words(arg)
		if !ok {
			p.refuse(tooManyNames)
			return
		}
		for i, name := range names {
			names[i] = s.front.opts.Namespace + name
		}
		queues = append([]string{}, names...) // must not be nil
		if len(arg) <= maxIdleQueues {
			s.queuesText, s.queues = string(arg), queues
		}
	}
	if s.isQuiet() {
		queues = []string{}
	}
	until := s.front.broker.Now().Add(fetchFor)
	s.fetch = parkedFetch{tag: p.lease(queues, s, until), until: until, noQueues: len(queues) == 0}
	s.Flush()
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

// beat: BEAT {wid, current_state?, rss_kb?}. The answer may tell a worker to go quiet, to terminate, or to stop some of
// its jobs.
func (s *session) beat(_ *pipeline, arg []byte) {
	var beat heartbeat
	if json.Unmarshal(arg, &beat) != nil {
		s.refuse(fmt.Sprintf("invalid BEAT %s", arg))
		return
	}
	state, err := s.recordBeat(beat)
	switch {
	case errors.Is(err, core.ErrForbidden):
		s.front.broker.CountRefusal()
		s.fail(err, "", 0)
	case err != nil:
		s.refuse("unknown worker " + beat.WID)
	default:
		s.answerBeat(beat.WID, state)
	}
}

// answerBeat answers a heartbeat.
func (s *session) answerBeat(wid string, state workerState) {
	jobs, commit := s.jobsToStop(wid)
	if state == running && len(jobs) == 0 {
		s.ok(commit)
		return
	}
	s.bulk(beatAnswer(state, jobs), commit)
}

// beatAnswer encodes the answer to a heartbeat: the state that the worker should take, and the jobs that it should
// stop.
func beatAnswer(state workerState, stop []core.JobInfo) []byte {
	var answer struct {
		State  string   `json:"state,omitempty"`
		Cancel []string `json:"cancel,omitempty"`
	}
	if state != running {
		answer.State = state.String()
	}
	for i := range stop {
		if j := stop[i].Job; j != nil {
			answer.Cancel = append(answer.Cancel, j.Identity())
		}
	}
	text, _ := json.Marshal(&answer) // text always has a JSON form
	return text
}

// stopQuery holds the buffers of jobsToStop, so that a heartbeat does not allocate them.
type stopQuery struct {
	find    core.Find
	ops     [1]core.Op
	replies []core.Reply
}

// jobsToStop returns the cancelled jobs that a worker still runs. The client may act for the worker, so it needs no
// right to read.
func (s *session) jobsToStop(wid string) (jobs []core.JobInfo, commit core.Commit) {
	if s.stops == nil {
		s.stops = &stopQuery{}
	}
	q := s.stops
	q.find = core.Find{
		Tag: s.NextTag(), Filter: core.Filter{Worker: wid, CancelRequested: true}, Order: core.OrderLeased,
		Limit: maxCancelled,
	}
	q.ops[0] = &q.find
	q.replies = s.front.broker.Unguarded().Do(s.Client, q.ops[:], q.replies[:0])
	for _, r := range q.replies {
		if r.Tag == q.find.Tag {
			jobs, commit = r.Jobs, r.Commit
		} else {
			s.lateReplies = append(s.lateReplies, r)
		}
	}
	clear(q.replies)
	return jobs, commit
}

// maxCancelled limits the jobs in the answer to one heartbeat. The answer to the next one names the rest.
const maxCancelled = 100

// endConnection: END.
func (s *session) endConnection(*pipeline, []byte) { s.HangUp() }
