package workq

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"broker/core"
	"broker/frontends"
)

// submission holds the arguments in which add, schedule and run differ.
type submission struct {
	ttl  []byte // add, schedule
	time []byte // schedule
	wait []byte // run
}

// Limits of the arguments, in milliseconds.
const (
	maxTTR = 86_400_000
	maxTTL = 2_592_000_000
)

// newJob makes the job of a submission; until is the end of a run's wait. Like the reference server, it checks numbers
// before ranges, so that a line with two mistakes gets the same reply.
func (s *session) newJob(r *request, what submission) (job *core.Job, until core.Instant, wrong string) {
	id, good := parseID(r.args[0])
	if !good {
		return nil, 0, badID
	}
	ttr, good := frontends.ParseUint(r.args[2], math.MaxUint32)
	if !good {
		return nil, 0, badTTR
	}
	job = &core.Job{Origin: core.Workq}
	now := s.front.broker.Now()
	ttl, wrong := uint64(0), ""
	if what.wait == nil {
		if ttl, wrong = setTTL(job, what); wrong == "" {
			wrong = setLimits(job, r)
		}
	}
	if wrong == "" {
		wrong = setPriority(job, r)
	}
	if wrong == "" && what.wait != nil {
		wait, inRange := parseWait(what.wait)
		if !inRange {
			wrong = badWait
		}
		job.Ephemeral, until = true, now.Add(wait)
	}
	if wrong == "" {
		wrong = checkRanges(id, r.args[1], ttr)
	}
	if wrong == "" && what.wait == nil {
		wrong = setExpiry(job, ttl, now)
	}
	if wrong != "" {
		return nil, 0, wrong
	}
	job.ID = id.text
	job.LeaseFor = time.Duration(ttr) * time.Millisecond
	job.Own = core.PolicyLeaseFor
	job.Body = bytes.Clone(r.body)
	return job, until, ""
}

// setTTL parses the ttl, whose range is checked later, and the time.
func setTTL(job *core.Job, what submission) (ttl uint64, wrong string) {
	ttl, good := frontends.ParseUint(what.ttl, math.MaxUint64)
	if !good {
		return 0, badTTL
	}
	if what.time == nil {
		return ttl, ""
	}
	at, good := parseTime(what.time)
	if !good {
		return 0, badTime
	}
	job.ReadyAt, job.ScheduledOrder = core.InstantOf(at), true
	return ttl, ""
}

// setLimits parses the flags max-attempts and max-fails.
func setLimits(job *core.Job, r *request) (wrong string) {
	if value, given := r.flag("max-attempts"); given {
		n, good := frontends.ParseUint(value, 255)
		if !good {
			return badMaxAttempts
		}
		job.MaxAttempts, job.Own = uint32(n), job.Own|core.PolicyMaxAttempts
	}
	if value, given := r.flag("max-fails"); given {
		n, good := frontends.ParseUint(value, 255)
		if !good {
			return badMaxFails
		}
		job.MaxFails, job.Own = uint32(n), job.Own|core.PolicyMaxFails
	}
	return ""
}

// setPriority parses the flag priority.
func setPriority(job *core.Job, r *request) (wrong string) {
	if value, given := r.flag("priority"); given {
		n, good := parsePriority(value)
		if !good {
			return badPriority
		}
		job.Priority = int64(n)
	}
	return ""
}

// checkRanges checks the ranges of parsed arguments.
func checkRanges(id jobID, name []byte, ttr uint64) (wrong string) {
	switch {
	case !id.valid:
		return badID
	case !validName(name):
		return badName
	case ttr == 0 || ttr > maxTTR:
		return badTTR
	}
	return ""
}

// setExpiry sets the time to live, which starts at the scheduled time or now. The outcome is kept as long.
func setExpiry(job *core.Job, ttl uint64, now core.Instant) (wrong string) {
	if ttl == 0 || ttl > maxTTL {
		return badTTL
	}
	from := now
	if job.ScheduledOrder {
		from = job.ReadyAt
	}
	job.ExpiresAt = from.Add(time.Duration(ttl) * time.Millisecond)
	if job.ExpiresAt <= now {
		return badTime
	}
	job.RetainUntil, job.CreatedAt = job.ExpiresAt, now
	return ""
}

// setQueue sets the queue and the type of a job, changed by the configured routes.
func (s *session) setQueue(job *core.Job, name []byte) {
	job.Queue = s.queue(name)
	if s.front.opts.Namespace != "" && job.Type == "" {
		job.Type = string(name)
	}
	if s.front.opts.Route == nil {
		return
	}
	queue, typ := s.front.opts.Route(string(name), cmp.Or(job.Type, string(name)))
	if queue != string(name) {
		job.Queue = queue
	}
	job.Type = typ
}

// setExtensions applies the extension flags. A unique key starts with the number of the protocol, so that clients of
// other protocols cannot use the same key.
func (s *session) setExtensions(r *request, job *core.Job) (wrong string) {
	if value, given := r.flag("unique"); given {
		if !validWord(value) {
			return badUnique
		}
		job.UniqueKey, job.Unique = core.WorkqKey+string(value), core.UniqueRefuse
	}
	if value, given := r.flag("type"); given {
		if !validWord(value) || !utf8.Valid(value) {
			return badType
		}
		job.Type = string(value)
	}
	if value, given := r.flag("after"); given {
		seqs, good, found := s.lookUp(value)
		switch {
		case !good:
			return badAfter
		case !found:
			return unknownAfter
		}
		job.After = seqs
	}
	if value, given := r.flag("parent"); given {
		seqs, good, found := s.lookUp(value)
		switch {
		case !good || bytes.IndexByte(value, ',') >= 0:
			return badParent
		case !found:
			return unknownParent
		}
		job.Parent = seqs[0]
	}
	return ""
}

// lookUp returns the Seqs of the jobs in a list of ids. good: the ids are valid. found: all jobs exist. It first
// flushes the earlier commands of the pipeline, because they may submit these jobs.
func (s *session) lookUp(list []byte) (seqs []uint64, good, found bool) {
	var ops []core.Op
	for text := range bytes.SplitSeq(list, []byte{','}) {
		if !validWord(text) || len(seqs) == core.MaxAfter {
			return nil, false, false
		}
		for _, ref := range s.front.refs(text) {
			ops = append(ops, &core.Inspect{Tag: uint64(len(seqs)), Ref: ref, Brief: true})
		}
		seqs = append(seqs, 0)
	}
	s.Flush()
	for _, r := range s.front.broker.Do(s.Client, ops, nil) {
		if r.Kind == core.Inspected && seqs[r.Tag] == 0 {
			seqs[r.Tag] = r.Info.Seq
		}
	}
	return seqs, true, !slices.Contains(seqs, 0)
}

// refs returns the possible meanings of an id, the most likely first: a UUID in any spelling, the exact id, a Gearman
// handle of this broker.
func (f *Frontend) refs(text []byte) []core.Ref {
	refs := make([]core.Ref, 0, 2)
	id, isUUID := parseID(text)
	if isUUID {
		refs = append(refs, core.Ref{ID: id.text})
	}
	if !isUUID || id.text != string(text) {
		refs = append(refs, core.Ref{ID: string(text)})
	}
	if seq, ok := f.opts.Handles.Parse(text); ok {
		refs = append(refs, core.Ref{Seq: seq})
	}
	return refs
}

// queue returns the core's name for a queue. The session keeps the last one, because most clients use one queue.
func (s *session) queue(name []byte) string {
	if string(name) != s.queueName || s.queueOfName == "" {
		s.queueOfName = s.front.opts.Namespace + string(name)
		s.queueName = s.queueOfName[len(s.front.opts.Namespace):]
	}
	return s.queueOfName
}

// leaseQueues returns the core's names for the queues of a lease, each once, so that all queues have the same chance.
// The session keeps the last list, because most workers always lease from the same queues. The core does not modify it.
func (s *session) leaseQueues(names [][]byte) []string {
	if len(names) == len(s.queues) && s.sameNames(names) {
		return s.queues
	}
	queues := make([]string, 0, min(len(names), maxKeptNames))
	seen := make(map[string]bool, min(len(names), maxKeptNames))
	for _, name := range names {
		if seen[string(name)] {
			continue
		}
		seen[string(name)] = true
		queues = append(queues, s.front.opts.Namespace+string(name))
	}
	if len(queues) <= maxKeptNames {
		s.queues = queues
	}
	return queues
}

// sameNames reports whether these are the names of the last lease.
func (s *session) sameNames(names [][]byte) bool {
	for i, name := range names {
		if s.queues[i][len(s.front.opts.Namespace):] != string(name) {
			return false
		}
	}
	return true
}

// failure makes a core.Failure from the body of a fail command: the bytes, and a text message made from them.
func failure(body []byte) *core.Failure {
	const messageBytes = 1000
	text := core.CutText(body, messageBytes)
	return &core.Failure{Message: strings.ToValidUTF8(string(text), "\uFFFD"), Data: bytes.Clone(body)}
}

// jobName is the id that Workq clients see. Jobs submitted by Workq clients always have a UUIDv4, which is used as it
// is. For any other id it is the job's alias.
func jobName(j *core.Job) string {
	if j.ID != "" && (j.Origin == core.Workq || core.IsUUIDv4(j.ID)) {
		return j.ID
	}
	return core.Alias(j.Seq)
}

// lifetime is the ttl of a job: from its scheduled time, or from its creation.
func lifetime(j *core.Job) time.Duration {
	from := j.CreatedAt
	switch {
	case j.ExpiresAt == 0:
		return 0
	case j.ReadyAt != 0:
		from = j.ReadyAt
	}
	return j.ExpiresAt.Sub(from)
}

// answerDone writes +OK.
func answerDone(_ *session, b []byte, _ *pending, _ *core.Reply) []byte { return append(b, okLine...) }

// answerLease writes the leased job, or -TIMEOUT.
func answerLease(s *session, b []byte, _ *pending, r *core.Reply) []byte {
	if r.Kind != core.Assigned {
		return append(b, timedOut...)
	}
	name, _ := s.front.name(r.Job.Queue)
	return appendLease(b, jobName(r.Job), name, r.Lease.LeaseFor, r.Job.Body)
}

// answerOutcome writes the outcome of a job, or -TIMEOUT.
func answerOutcome(_ *session, b []byte, p *pending, r *core.Reply) []byte {
	if r.Kind != core.Ended {
		return append(b, timedOut...)
	}
	switch r.Outcome.Cause {
	case core.Finished:
		return appendOutcome(b, p.id, r.Outcome.Success, resultOf(r.Outcome))
	case core.LeaseRanOut:
		return appendOutcome(b, p.id, false, nil)
	case core.Expired, core.Cancelled:
	}
	return append(b, notFound...)
}

// resultOf returns the result from the worker, or the reason of the failure.
func resultOf(o *core.Outcome) []byte {
	switch {
	case o.Success || o.Failure == nil:
		return o.Result
	case len(o.Failure.Data) > 0:
		return o.Failure.Data
	case o.Failure.Message != "":
		return []byte(o.Failure.Message)
	}
	return o.Result
}
