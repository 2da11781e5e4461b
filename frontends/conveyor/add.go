package conveyor

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
)

// lpush key value...
func lpush(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	switch k.kind {
	case keyQueue, keyChildren, keyHeirs, keyFailed:
	default:
		return refuseKey(b, args[1])
	}
	for _, value := range args[2:] {
		e, err := parseEnvelope([]byte(value))
		if err == nil && e.uuid == "" {
			err = errNoUUID
		}
		if err != nil {
			return refuseError(b, err)
		}
		if r := s.push(k, &e); r.Kind == core.Failed {
			return refuseError(b, r.Err)
		}
	}
	length := int64(0)
	if k.kind != keyFailed { // the length is not stored: each failure would have to count all earlier ones
		length = s.lengthIfAllowed(k)
	}
	return redcon.AppendInt(b, max(length, int64(len(args)-2)))
}

// lengthIfAllowed is the length of a list for a client that may read it; zero for others, so that they only learn what
// they have pushed.
func (s *session) lengthIfAllowed(k key) int64 {
	if k.kind == keyQueue &&
		!s.Principal().May(access.Read, s.front.queueOf(k.namespace, k.name)) {
		return 0
	}
	length, _ := s.length(k) // zero if it is not known
	return length
}

// push adds one job to a list.
func (s *session) push(k key, e *envelope) core.Reply {
	known := s.inspect(e.uuid)
	switch k.kind {
	case keyFailed:
		return s.bury(e, known)
	case keyQueue:
		if known != nil {
			return s.requeue(e, known)
		}
	}
	if known != nil { // the client repeats its command
		return core.Reply{Kind: core.Accepted}
	}
	j := s.front.jobOf(e, k.namespace, e.queue)
	switch k.kind {
	case keyQueue:
		j = s.front.jobOf(e, k.namespace, k.name)
	case keyChildren:
		parent := s.inspect(k.name)
		if parent == nil || !parent.Info.State.Unfinished() {
			return core.Reply{Kind: core.Failed, Err: errNoParent}
		}
		j.Parent = parent.Seq
	case keyHeirs:
		predecessor := s.inspect(k.name)
		if predecessor == nil {
			return core.Reply{Kind: core.Failed, Err: errNoPredecessor}
		}
		j.After = []uint64{predecessor.Seq}
	}
	return *s.ask(&core.Submit{Tag: 1, Job: j})
}

// inspect finds a job by its uuid, without its body; nil if it does not exist.
func (s *session) inspect(uuid string) *core.Reply {
	r := s.ask(&core.Inspect{Tag: 1, Ref: core.Ref{ID: uuid}, Brief: true})
	if r.Kind != core.Inspected {
		return nil
	}
	found := *r
	return &found
}

// requeue handles LPUSH of an existing job to a queue: the end of a restart, or the release of a waiting job. Otherwise
// the client repeats its push.
func (s *session) requeue(e *envelope, known *core.Reply) core.Reply {
	ref := core.Ref{Seq: known.Seq}
	switch known.Info.State {
	case core.Leased:
		if epoch, begun := s.takePipeline(e.uuid); begun {
			return *s.ask(&core.Release{Tag: 1, Ref: ref, Epoch: epoch})
		}
	case core.Scheduled, core.Retrying, core.Dead:
		return *s.ask(&core.Enqueue{Tag: 1, Ref: ref, If: core.InState(known.Info.State)})
	case core.Gone, core.Blocked, core.Ready, core.Done:
	}
	return core.Reply{Kind: core.Accepted}
}

// zadd key score member [score member]...
func zadd(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	if len(args)%2 != 0 {
		return redcon.AppendError(b, "ERR syntax error")
	}
	if (k.kind == keyWorkers || k.kind == keyQueues) && len(args) > 2*maxPopKeys {
		return redcon.AppendError(b, "ERR too many members")
	}
	added := 0
	for pair := range slices.Chunk(args[2:], 2) {
		score, err := strconv.ParseFloat(pair[0], 64)
		if err != nil || math.IsNaN(score) {
			return redcon.AppendError(b, "ERR value is not a valid float")
		}
		isNew, r := false, core.Reply{Kind: core.Accepted}
		switch k.kind {
		case keyWorkers, keyQueues:
			isNew = s.checkIn(k, pair[1], score)
		case keyScheduled:
			isNew, r = s.schedule(k, score, pair[1])
		default:
			return refuseKey(b, args[1])
		}
		if r.Kind == core.Failed {
			return refuseError(b, r.Err)
		}
		if isNew {
			added++
		}
	}
	return redcon.AppendInt(b, int64(added))
}

// schedule submits a job for later, changes when one is due, or ends a run that has failed.
func (s *session) schedule(k key, score float64, value string) (isNew bool, r core.Reply) {
	e, err := parseEnvelope([]byte(value))
	if err == nil && e.uuid == "" {
		err = errNoUUID
	}
	if err != nil {
		return false, core.Reply{Kind: core.Failed, Err: err}
	}
	due := instantOfScore(score)
	known := s.inspect(e.uuid)
	if known == nil {
		j := s.front.jobOf(&e, k.namespace, e.queue)
		j.ReadyAt = due
		return true, *s.ask(&core.Submit{Tag: 1, Job: j})
	}
	switch known.Info.State {
	case core.Leased:
		return s.retry(&e, known, due)
	case core.Scheduled, core.Retrying:
		return false, *s.ask(&core.Update{
			Tag: 1, Ref: core.Ref{Seq: known.Seq}, If: core.InState(known.Info.State),
			Set: core.JobChange{ReadyAt: &due},
		})
	case core.Gone, core.Blocked, core.Ready, core.Done, core.Dead:
	}
	return false, core.Reply{Kind: core.Accepted}
}

// instantOfScore converts a score in seconds to an instant.
func instantOfScore(score float64) core.Instant {
	const latest = 1 << 37 // seconds: some thousand years
	score = min(max(score, 0), latest)
	whole, fraction := math.Modf(score)
	return core.InstantOf(time.Unix(int64(whole), int64(fraction*1e9)))
}
