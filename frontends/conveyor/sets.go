package conveyor

import (
	"slices"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
)

// scard key
func scard(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	switch k.kind {
	case keyOpen:
		r := s.inspect(k.name)
		if r == nil || r.Info.State.Unfinished() { // children start when the run ends
			return redcon.AppendInt(b, 0)
		}
		if r.Info.Children > 0 { // a client that closes the job stops at this reply
			s.front.mu.Lock()
			s.front.closing.leaveAll(k.namespace + ":" + k.name)
			s.front.mu.Unlock()
		}
		return redcon.AppendInt(b, int64(r.Info.Children))
	case keyActiveJobs, keyWorkerJobs:
		return s.active(b, k, func(uuids []string) []byte {
			return redcon.AppendInt(nil, int64(len(uuids)))
		})
	}
	return refuseKey(b, args[1])
}

// smembers key
func smembers(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	if k.kind != keyActiveJobs && k.kind != keyWorkerJobs {
		return refuseKey(b, args[1])
	}
	return s.active(b, k, func(uuids []string) []byte {
		slices.Sort(uuids)
		return appendStrings(nil, uuids)
	})
}

// spop key: a client that finds a dead worker reads its jobs one by one and restarts them.
func spop(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	if k.kind != keyWorkerJobs {
		return refuseKey(b, args[1])
	}
	for _, i := range s.jobsOf(k.name) {
		if i.Job == nil || s.popped[i.Job.Identity()] ||
			!s.AllowedFor(access.Consume, i.Queue) {
			continue
		}
		uuid := i.Job.Identity()
		if s.popped == nil {
			s.popped = make(map[string]bool)
		}
		s.popped[uuid] = true
		return redcon.AppendBulkString(b, uuid)
	}
	s.popped = nil
	return redcon.AppendNull(b)
}

// jobsOf returns the first thousand jobs that a worker holds. A page may be short: if a connection also has the
// worker's name, the core searches all leases.
func (s *session) jobsOf(worker string) (jobs []core.JobInfo) {
	op := &core.Find{Tag: 1, Filter: core.Filter{Worker: worker}, Order: core.OrderLeased, Limit: maxRange}
	for {
		next := ""
		if r := s.unguarded(op); r.Kind == core.Listed {
			jobs, next = append(jobs, r.Jobs...), r.NextCursor
		}
		if op.Cursor, op.Limit = next, maxRange-len(jobs); next == "" || op.Limit <= 0 {
			return jobs
		}
	}
}

// extendLeases extends the leases of a worker that has checked in.
func (s *session) extendLeases(worker string) {
	until := s.front.broker.Now().Add(leaseFor)
	for _, i := range s.jobsOf(worker) {
		s.ask(&core.Report{
			Tag: 1, Ref: core.Ref{Seq: i.Seq}, If: core.Condition{Worker: worker}, Authority: core.ByLeased,
			Heartbeat: true, ExtendUntil: until,
		})
	}
}
