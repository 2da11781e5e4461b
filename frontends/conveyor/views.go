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

// llen key
func llen(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	switch k.kind {
	case keyFailed:
		return s.count(b, k.namespace, core.Dead)
	case keyQueue, keyChildren, keyHeirs:
		n, err := s.length(k)
		if err != nil {
			return refuseError(b, err)
		}
		return redcon.AppendInt(b, n)
	}
	return refuseKey(b, args[1])
}

// length is the number of jobs in a list, other than that of failed jobs.
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

// lrange key start stop: jobs of a list, the newest first.
func lrange(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	if k.kind != keyQueue && k.kind != keyFailed {
		return refuseKey(b, args[1])
	}
	from, err1 := strconv.Atoi(args[2])
	to, err2 := strconv.Atoi(args[3])
	if err1 != nil || err2 != nil {
		return redcon.AppendError(b, resp.NotInteger)
	}
	if k.kind == keyFailed {
		died := core.Find{Filter: s.filterOf(k.namespace, core.Dead), Order: core.OrderDied, Desc: true}
		return s.indexed(b, k.namespace, died, from, to)
	}
	length, err := s.length(k)
	if err != nil {
		return refuseError(b, err)
	}
	n := int(length)
	from, to = bounds(from, to, n)
	switch {
	case to-from > maxRange:
		return refuseRange(b)
	case from >= to:
		return redcon.AppendArray(b, 0)
	}
	// The broker's list begins with the oldest.
	r := s.ask(&core.ListJobs{
		Tag: 1, Queue: s.front.queueOf(k.namespace, k.name), State: core.Ready, Offset: n - to, Limit: to - from,
		Brief: true,
	})
	if r.Kind != core.Listed {
		return redcon.AppendArray(b, 0)
	}
	seqs := make([]uint64, 0, len(r.Jobs))
	for i := range slices.Backward(r.Jobs) {
		seqs = append(seqs, r.Jobs[i].Seq)
	}
	return s.appendJobs(b, k.namespace, seqs)
}

// indexed answers with the jobs between two indexes of a search; see bounds.
func (s *session) indexed(b []byte, namespace string, search core.Find, from, to int) []byte {
	return s.counted(b, namespace, search.Filter.States, func(n int) []byte {
		first, end := bounds(from, to, n)
		return s.boundedPart(nil, namespace, search, first, end)
	})
}

// boundedPart is part for positions that a client has chosen.
func (s *session) boundedPart(b []byte, namespace string, search core.Find, from, to int) []byte {
	if to-from > maxRange {
		return refuseRange(b)
	}
	return s.part(b, namespace, search, from, to)
}

func refuseRange(b []byte) []byte {
	return redcon.AppendError(b, "ERR a range has at most "+strconv.Itoa(maxRange)+" jobs")
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
func (s *session) appendJobs(b []byte, namespace string, seqs []uint64) []byte {
	n := 0
	var jobs []byte
	for _, seq := range seqs {
		r := s.ask(&core.Inspect{Tag: 1, Ref: core.Ref{Seq: seq}})
		if r.Kind != core.Inspected || r.Job == nil {
			continue // removed in the meantime
		}
		jobs = redcon.AppendBulk(jobs, s.front.encodeJob(namespace, r.Job, r.Info.Queue, r.Info.Type, r.Info.Fails))
		if len(jobs) > s.front.opts.MaxOutputBytes && len(seqs) > 1 {
			return redcon.AppendError(b, "ERR the jobs of this range are too large for one reply; ask for fewer")
		}
		n++
	}
	return append(redcon.AppendArray(b, n), jobs...)
}

// lrem key count job: an operator removes a waiting or failed job.
func lrem(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	if _, err := strconv.Atoi(args[2]); err != nil {
		return redcon.AppendError(b, resp.NotInteger)
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
	n, err := s.cancel(args[3], as)
	if err != nil {
		return refuseError(b, err)
	}
	return redcon.AppendInt(b, n)
}

// cancel removes a job that a client names by its bytes, if the job still has the state that the client expects. It
// returns the number of removed jobs.
func (s *session) cancel(value string, as core.Condition) (n int64, err error) {
	e, err := parseEnvelope([]byte(value))
	if err != nil || e.uuid == "" {
		return 0, nil
	}
	r := s.ask(&core.Cancel{Tag: 1, Ref: core.Ref{ID: e.uuid}, If: as})
	switch {
	case errors.Is(r.Err, core.ErrNotFound), errors.Is(r.Err, core.ErrConflict):
		return 0, nil
	case r.Kind == core.Failed:
		return 0, r.Err
	}
	s.Note(s.front.opts.Audit, access.Change{Action: "job.cancel", Target: e.uuid})
	return 1, nil
}

// zrem key member...
func zrem(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	switch k.kind {
	case keyScheduled:
		removed := int64(0)
		for _, value := range args[2:] {
			n, err := s.cancel(value, core.InState(core.Scheduled, core.Retrying))
			if err != nil {
				return refuseError(b, err)
			}
			removed += n
		}
		return redcon.AppendInt(b, removed)
	case keyWorkers, keyQueues:
		return redcon.AppendInt(b, int64(s.removeMembers(k, args[2:])))
	}
	return refuseKey(b, args[1])
}

// zcard key
func zcard(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	switch k.kind {
	case keyScheduled:
		return s.count(b, k.namespace, core.Scheduled, core.Retrying)
	case keyWorkers, keyQueues:
		return redcon.AppendInt(b, int64(len(s.members(k, math.Inf(-1), math.Inf(1)))))
	}
	return refuseKey(b, args[1])
}

// dueJobs finds the scheduled jobs by their time.
func (s *session) dueJobs(k key) core.Find {
	return core.Find{Filter: s.filterOf(k.namespace, core.Scheduled, core.Retrying), Order: core.OrderDue}
}

// zrange key start stop: by time.
func zrange(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	from, err1 := strconv.Atoi(args[2])
	to, err2 := strconv.Atoi(args[3])
	if err1 != nil || err2 != nil {
		return redcon.AppendError(b, resp.NotInteger)
	}
	switch k.kind {
	case keyScheduled:
		due := s.dueJobs(k)
		if from >= 0 && to >= 0 {
			return s.boundedPart(b, k.namespace, due, from, to+1)
		}
		return s.indexed(b, k.namespace, due, from, to)
	case keyWorkers, keyQueues:
		names := s.members(k, math.Inf(-1), math.Inf(1))
		from, to = bounds(from, to, len(names))
		return appendStrings(b, names[from:to])
	}
	return refuseKey(b, args[1])
}

// zrangebyscore key min max. Clients look for due scheduled jobs to move them to their queues. The broker moves due
// jobs itself, so only a max in the future finds jobs.
func zrangebyscore(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	low, high, ok := parseBounds(args[2], args[3])
	if !ok {
		return redcon.AppendError(b, "ERR min or max is not a float")
	}
	switch k.kind {
	case keyScheduled:
		now := s.front.broker.Now()
		if instantOfScore(high) <= now {
			return redcon.AppendArray(b, 0)
		}
		search := s.dueJobs(k)
		search.Filter.Due = core.Range{From: instantOfScore(low), To: instantOfScore(high) + 1}
		return s.part(b, k.namespace, search, 0, maxRange)
	case keyWorkers, keyQueues:
		return appendStrings(b, s.members(k, low, high))
	}
	return refuseKey(b, args[1])
}

// zremrangebyscore key min max
func zremrangebyscore(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	low, high, ok := parseBounds(args[2], args[3])
	switch {
	case k.kind != keyWorkers && k.kind != keyQueues:
		return refuseKey(b, args[1])
	case !ok:
		return redcon.AppendError(b, "ERR min or max is not a float")
	}
	return redcon.AppendInt(b, int64(s.removeMembers(k, s.members(k, low, high))))
}

func appendStrings(b []byte, all []string) []byte {
	b = redcon.AppendArray(b, len(all))
	for _, s := range all {
		b = redcon.AppendBulkString(b, s)
	}
	return b
}
