package conveyor

import (
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends/shared/resp"
)

// maxRange limits the jobs of one reply.
const maxRange = 1000

// llen key
func llen(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	switch k.kind {
	case keyQueue, keyFailed, keyChildren, keyHeirs:
		n, err := s.length(k)
		if err != nil {
			return refuseError(b, err), 0
		}
		return redcon.AppendInt(b, n), 0
	}
	return refuseKey(b, args[1])
}

// length is the number of jobs in a list.
func (s *session) length(k key) (int64, error) {
	switch k.kind {
	case keyQueue:
		r := s.ask(&core.InspectQueue{Tag: 1, Queue: s.front.queueOf(k.namespace, k.name)})
		if r.Kind == core.Queues && len(r.Queues) > 0 {
			return int64(r.Queues[0].Ready()), nil
		}
		if errors.Is(r.Err, core.ErrForbidden) {
			return 0, r.Err
		}
	case keyFailed:
		return s.count(k.namespace, core.Dead)
	case keyChildren, keyHeirs:
		r := s.ask(&core.Inspect{Tag: 1, Ref: core.Ref{ID: k.name}, Brief: true, Dependents: k.kind == keyHeirs})
		if r.Kind != core.Inspected {
			return 0, nil
		}
		children := r.Info.Children
		if !r.Info.State.Unfinished() {
			children = 0
		}
		if k.kind == keyHeirs {
			return int64(max(r.Info.Dependents-children, 0)), nil
		}
		return int64(children), nil
	}
	return 0, nil
}

// filterOf selects the jobs in some states that Conveyor clients of a namespace have submitted. For the default
// namespace it also matches jobs of other namespaces, which the callers skip.
func (s *session) filterOf(namespace string, states ...core.State) core.Filter {
	f := core.Filter{Origins: []core.Protocol{core.Conveyor}, States: states}
	if namespace != defaultNamespace {
		f.QueuePrefix = s.front.queueOf(namespace, "")
	}
	return f
}

// each calls visit for the jobs of a search, page by page, until visit returns false.
func (s *session) each(search core.Find, visit func(*core.JobInfo) bool) error {
	search.Tag, search.Limit = 1, maxRange
	for op := &search; ; {
		r := s.ask(op)
		if r.Kind == core.Failed {
			return r.Err
		}
		for i := range r.Jobs {
			if !visit(&r.Jobs[i]) {
				return nil
			}
		}
		if op.Cursor = r.NextCursor; op.Cursor == "" {
			return nil
		}
	}
}

// maxCounted limits the jobs that count walks over to distinguish namespaces.
const maxCounted = 100_000

// count is the number of jobs of a namespace in some states.
func (s *session) count(namespace string, states ...core.State) (n int64, err error) {
	if namespace != defaultNamespace {
		r := s.ask(&core.Find{Tag: 1, Filter: s.filterOf(namespace, states...), Limit: 1, Brief: true, WithCount: true})
		if r.Kind != core.Listed {
			return 0, r.Err
		}
		return int64(r.Count), nil
	}
	search := core.Find{Filter: s.filterOf(namespace, states...), Brief: true}
	err = s.each(search, func(i *core.JobInfo) bool {
		if _, ok := s.front.nameOf(namespace, i.Queue); ok {
			n++
		}
		return n < maxCounted
	})
	return n, err
}

// lrange key start stop: jobs of a list, the newest first.
func lrange(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	if k.kind != keyQueue && k.kind != keyFailed {
		return refuseKey(b, args[1])
	}
	from, err1 := strconv.Atoi(args[2])
	to, err2 := strconv.Atoi(args[3])
	if err1 != nil || err2 != nil {
		return resp.Refuse(b, resp.NotInteger)
	}
	length, err := s.length(k)
	if err != nil {
		return refuseError(b, err), 0
	}
	n := int(length)
	from, to = bounds(from, to, n)
	if to-from > maxRange {
		return resp.Refuse(b, "ERR a range has at most "+strconv.Itoa(maxRange)+" jobs")
	}
	if k.kind == keyFailed {
		return s.appendPart(b, k.namespace,
			core.Find{Filter: s.filterOf(k.namespace, core.Dead), Order: core.OrderDied, Desc: true}, from, to)
	}
	if from >= to {
		return redcon.AppendArray(b, 0), 0
	}
	// The broker's list begins with the oldest.
	r := s.ask(&core.ListJobs{
		Tag: 1, Queue: s.front.queueOf(k.namespace, k.name), State: core.Ready, Offset: n - to, Limit: to - from,
		Brief: true,
	})
	if r.Kind != core.Listed {
		return redcon.AppendArray(b, 0), 0
	}
	seqs := make([]uint64, 0, len(r.Jobs))
	for i := range slices.Backward(r.Jobs) {
		seqs = append(seqs, r.Jobs[i].Seq)
	}
	listed := r.Commit
	b, commit := s.appendJobs(b, k.namespace, seqs)
	return b, max(commit, listed)
}

// bounds converts the indexes of a range to positions. As in Redis, negative indexes count from the end. The second
// position is after the last element.
func bounds(from, to, n int) (first, end int) {
	if from < 0 {
		from = max(from+n, 0)
	}
	if to < 0 {
		to += n
	}
	end = min(to, n-1) + 1
	return min(from, max(end, 0)), max(end, 0)
}

// appendJobs appends an array of jobs with their bodies.
func (s *session) appendJobs(b []byte, namespace string, seqs []uint64) ([]byte, core.Commit) {
	n, newest := 0, core.Commit(0)
	var jobs []byte
	for _, seq := range seqs {
		r := s.ask(&core.Inspect{Tag: 1, Ref: core.Ref{Seq: seq}})
		if r.Kind != core.Inspected || r.Job == nil {
			continue // removed in the meantime
		}
		jobs = redcon.AppendBulk(jobs, s.front.encodeJob(namespace, r.Job, r.Info.Queue, r.Info.Type, r.Info.Fails))
		if len(jobs) > s.front.opts.MaxOutputBytes && len(seqs) > 1 {
			return resp.Refuse(b, "ERR the jobs of this range are too large for one reply; ask for fewer")
		}
		newest = max(newest, r.Commit)
		n++
	}
	return append(redcon.AppendArray(b, n), jobs...), newest
}

// appendPart appends the jobs between two positions of a search.
func (s *session) appendPart(b []byte, namespace string, search core.Find, from, to int) ([]byte, core.Commit) {
	search.Brief = true
	at, seqs := 0, []uint64(nil)
	err := s.each(search, func(i *core.JobInfo) bool {
		if _, ok := s.front.nameOf(namespace, i.Queue); !ok {
			return true
		}
		if at >= from && at < to {
			seqs = append(seqs, i.Seq)
		}
		at++
		return at < to
	})
	if err != nil {
		return refuseError(b, err), 0
	}
	return s.appendJobs(b, namespace, seqs)
}

// lrem key count job: an operator removes a waiting or failed job.
func lrem(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	if _, err := strconv.Atoi(args[2]); err != nil {
		return resp.Refuse(b, resp.NotInteger)
	}
	var as core.Condition
	switch k.kind {
	case keyQueue:
		as = core.Condition{States: []core.State{core.Ready}, Queue: s.front.queueOf(k.namespace, k.name)}
	case keyFailed:
		as = core.InState(core.Dead)
	default:
		return refuseKey(b, args[1])
	}
	n, commit, err := s.cancel(args[3], as)
	if err != nil {
		return refuseError(b, err), 0
	}
	return redcon.AppendInt(b, n), commit
}

// cancel removes a job that a client names by its bytes, if the job still has the state that the client expects. It
// returns the number of removed jobs.
func (s *session) cancel(value string, as core.Condition) (n int64, commit core.Commit, err error) {
	e, err := parseEnvelope([]byte(value))
	if err != nil || e.uuid == "" {
		return 0, 0, nil
	}
	r := s.ask(&core.Cancel{Tag: 1, Ref: core.Ref{ID: e.uuid}, If: as})
	switch {
	case errors.Is(r.Err, core.ErrNotFound), errors.Is(r.Err, core.ErrConflict):
		return 0, 0, nil
	case r.Kind == core.Failed:
		return 0, 0, r.Err
	}
	s.Note(s.front.opts.Audit, access.Change{Action: "job.cancel", Target: e.uuid})
	return 1, r.Commit, nil
}

// zrem key member...
func zrem(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	switch k.kind {
	case keyScheduled:
		removed, newest := int64(0), core.Commit(0)
		for _, value := range args[2:] {
			n, commit, err := s.cancel(value, core.InState(core.Scheduled, core.Retrying))
			if err != nil {
				return refuseError(b, err), newest
			}
			removed, newest = removed+n, max(newest, commit)
		}
		return redcon.AppendInt(b, removed), newest
	case keyWorkers, keyQueues:
		return redcon.AppendInt(b, int64(s.removeMembers(k, args[2:]))), 0
	}
	return refuseKey(b, args[1])
}

// zcard key
func zcard(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	switch k.kind {
	case keyScheduled:
		n, err := s.count(k.namespace, core.Scheduled, core.Retrying)
		if err != nil {
			return refuseError(b, err), 0
		}
		return redcon.AppendInt(b, n), 0
	case keyWorkers, keyQueues:
		return redcon.AppendInt(b, int64(len(s.members(k, math.Inf(-1), math.Inf(1))))), 0
	}
	return refuseKey(b, args[1])
}

// dueJobs finds the scheduled jobs by their time.
func (s *session) dueJobs(k key) core.Find {
	return core.Find{Filter: s.filterOf(k.namespace, core.Scheduled, core.Retrying), Order: core.OrderDue}
}

// zrange key start stop: by time.
func zrange(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	from, err1 := strconv.Atoi(args[2])
	to, err2 := strconv.Atoi(args[3])
	if err1 != nil || err2 != nil {
		return resp.Refuse(b, resp.NotInteger)
	}
	switch k.kind {
	case keyScheduled:
		if to < 0 || from < 0 {
			n, err := s.count(k.namespace, core.Scheduled, core.Retrying)
			if err != nil {
				return refuseError(b, err), 0
			}
			from, to = bounds(from, to, int(n))
		} else {
			to++
		}
		if to-from > maxRange {
			return resp.Refuse(b, "ERR a range has at most "+strconv.Itoa(maxRange)+" jobs")
		}
		return s.appendPart(b, k.namespace, s.dueJobs(k), from, to)
	case keyWorkers, keyQueues:
		names := s.members(k, math.Inf(-1), math.Inf(1))
		from, to = bounds(from, to, len(names))
		return appendStrings(b, names[from:to]), 0
	}
	return refuseKey(b, args[1])
}

// zrangebyscore key min max. Clients look for due scheduled jobs to move them to their queues. The broker moves due
// jobs itself, so only a max in the future finds jobs.
func zrangebyscore(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	low, high, ok := parseBounds(args[2], args[3])
	if !ok {
		return resp.Refuse(b, "ERR min or max is not a float")
	}
	switch k.kind {
	case keyScheduled:
		now := s.front.broker.Now()
		if instantOfScore(high) <= now {
			return redcon.AppendArray(b, 0), 0
		}
		search := s.dueJobs(k)
		search.Filter.Due = core.Range{From: instantOfScore(low), To: instantOfScore(high) + 1}
		return s.appendPart(b, k.namespace, search, 0, maxRange)
	case keyWorkers, keyQueues:
		return appendStrings(b, s.members(k, low, high)), 0
	}
	return refuseKey(b, args[1])
}

// zremrangebyscore key min max
func zremrangebyscore(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	low, high, ok := parseBounds(args[2], args[3])
	switch {
	case k.kind != keyWorkers && k.kind != keyQueues:
		return refuseKey(b, args[1])
	case !ok:
		return resp.Refuse(b, "ERR min or max is not a float")
	}
	return redcon.AppendInt(b, int64(s.removeMembers(k, s.members(k, low, high)))), 0
}

func appendStrings(b []byte, all []string) []byte {
	b = redcon.AppendArray(b, len(all))
	for _, s := range all {
		b = redcon.AppendBulkString(b, s)
	}
	return b
}
