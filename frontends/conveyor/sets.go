package conveyor

import (
	"slices"
	"strings"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
)

// scard key
func scard(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	switch k.kind {
	case keyOpen:
		r := s.inspect(k.name)
		if r == nil || r.Info.State.Unfinished() { // children start when the run ends
			return redcon.AppendInt(b, 0), 0
		}
		if r.Info.Children > 0 { // a client that closes the job stops at this reply
			s.front.mu.Lock()
			s.front.closing.leaveAll(k.namespace + ":" + k.name)
			s.front.mu.Unlock()
		}
		return redcon.AppendInt(b, int64(r.Info.Children)), r.Commit
	case keyActiveJobs, keyWorkerJobs:
		names, err := s.activeNames(k)
		if err != nil {
			return refuseError(b, err), 0
		}
		return redcon.AppendInt(b, int64(len(names))), 0
	}
	return refuseKey(b, args[1])
}

// smembers key
func smembers(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	if k.kind != keyActiveJobs && k.kind != keyWorkerJobs {
		return refuseKey(b, args[1])
	}
	names, err := s.activeNames(k)
	if err != nil {
		return refuseError(b, err), 0
	}
	slices.SortFunc(names, strings.Compare)
	return appendStrings(b, names), 0
}

// activeNames returns the uuids of running jobs, of one worker or all, and of jobs that wait for their children.
func (s *session) activeNames(k key) (uuids []string, err error) {
	visit := func(i *core.JobInfo) bool {
		if _, ok := s.front.nameOf(k.namespace, i.Queue); ok && isActive(i) && i.Job != nil {
			uuids = append(uuids, i.Job.Identity())
		}
		return len(uuids) < maxCounted
	}
	if k.kind == keyWorkerJobs {
		return uuids, s.each(core.Find{Filter: core.Filter{Worker: k.name}, Order: core.OrderLeased}, visit)
	}
	return uuids, s.each(core.Find{Filter: s.filterOf(k.namespace, core.Leased, core.Done)}, visit)
}

// spop key: a client that finds a dead worker reads its jobs one by one and restarts them.
func spop(s *session, b []byte, args []string) ([]byte, core.Commit) {
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
		return redcon.AppendBulkString(b, uuid), 0
	}
	s.popped = nil
	return redcon.AppendNull(b), 0
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
