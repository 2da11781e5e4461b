package conveyor

import (
	"slices"
	"time"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
)

// srem key member...
func srem(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	removed := 0
	for _, uuid := range args[2:] {
		var r core.Reply
		switch k.kind {
		case keyWorkerJobs: // the worker's function has returned
			r = s.complete(k, uuid, k.name)
		case keyActiveJobs:
			if _, begun := s.pipelines[uuid]; begun {
				removed++
				continue
			}
			if r = s.complete(k, uuid, ""); r.Seq == 0 && s.leaveActive(k, uuid) {
				removed++
			}
		case keyOpen: // the end of the child implies this
			removed++
			continue
		default:
			return refuseKey(b, args[1])
		}
		if r.Kind == core.Failed {
			return refuseError(b, r.Err)
		}
		if r.Seq != 0 {
			removed++
		}
	}
	return redcon.AppendInt(b, int64(removed))
}

// complete ends a job as done. That releases its children. Its heirs are released in the commit in which the last child
// is closed. A job does not change if another worker holds it, if it has ended, or if it waits; a waiting job changes
// only by a late report of its worker. The reply's Seq is zero if nothing changed.
func (s *session) complete(k key, uuid, worker string) core.Reply {
	known := s.inspect(uuid)
	if known == nil {
		return core.Reply{Kind: core.Accepted}
	}
	i := known.Info
	switch i.State {
	case core.Leased:
		if worker != "" && i.Worker != "" && i.Worker != worker {
			return core.Reply{Kind: core.Accepted}
		}
	case core.Ready, core.Scheduled, core.Retrying:
		if worker == "" {
			return core.Reply{Kind: core.Accepted}
		}
	case core.Gone, core.Blocked, core.Done, core.Dead:
		return core.Reply{Kind: core.Accepted}
	}
	ref := core.Ref{Seq: known.Seq}
	s.rememberClosing(k.namespace, ref)
	r := *s.ask(&core.Complete{
		Tag: 1, Ref: ref, If: core.Condition{States: []core.State{i.State}, Epoch: i.Epoch, HasEpoch: true},
		Authority: core.ByAnyone,
	})
	if r.Kind != core.Failed {
		r.Seq = known.Seq
	}
	return r
}

// closingJobs holds ended jobs that clients still read during the steps of a close. Several clients may close different
// children of the same job at the same time. The DEL of the last client drops the job.
type closingJobs struct {
	jobs  map[string]closingJob // by namespace and uuid
	bytes int
	order []closingAt // oldest first; entries of removed or newer jobs are skipped
	puts  uint64
}

// closingAt records when a job was added.
type closingAt struct {
	name string
	put  uint64
}

type closingJob struct {
	raw     []byte
	queue   string
	parent  string // its name in jobs; empty: none
	put     uint64 // its last one
	left    bool   // a client has removed it from the set of active jobs
	clients int    // number of clients that have not deleted it yet
	expires core.Instant
}

// Limits of closingJobs. The next step of a client follows within milliseconds.
const (
	closingFor      = time.Minute
	maxClosingBytes = 16 << 20
)

func (c *closingJobs) put(name string, j closingJob, now core.Instant) {
	if len(j.raw) > maxClosingBytes {
		return
	}
	if c.jobs == nil {
		c.jobs = make(map[string]closingJob)
	}
	j.clients, j.left = c.jobs[name].clients+1, c.jobs[name].left
	c.remove(name)
	c.puts++
	j.expires, j.put = now.Add(closingFor), c.puts
	c.jobs[name] = j
	c.bytes += len(j.raw) + len(name)
	c.order = append(c.order, closingAt{name, j.put})
	for c.bytes > maxClosingBytes {
		c.dropOldest()
	}
	if len(c.order) > 2*len(c.jobs)+minOrder { // more than half of it is obsolete
		c.order = slices.DeleteFunc(c.order, c.isPast)
	}
}

// minOrder is the length of order below which it is not compacted.
const minOrder = 1000

func (c *closingJobs) dropOldest() {
	if !c.isPast(c.order[0]) {
		c.remove(c.order[0].name)
	}
	c.order = c.order[1:]
}

// isPast reports whether an entry is obsolete: the job was removed or added again.
func (c *closingJobs) isPast(at closingAt) bool { return c.jobs[at.name].put != at.put }

func (c *closingJobs) remove(name string) {
	if j, found := c.jobs[name]; found {
		c.bytes -= len(j.raw) + len(name)
		delete(c.jobs, name)
	}
}

// leave records that a client has deleted a job, or stops because the job has open children.
func (c *closingJobs) leave(name string) (found bool) {
	j, found := c.jobs[name]
	switch {
	case !found:
	case j.clients > 1:
		j.clients--
		c.jobs[name] = j
	default:
		c.remove(name)
	}
	return found
}

// leaveActive records that a client has removed a job from the set of active jobs. It reports whether no other has done
// so before.
func (c *closingJobs) leaveActive(name string) bool {
	j, found := c.jobs[name]
	if !found || j.left {
		return false
	}
	j.left = true
	c.jobs[name] = j
	return true
}

// leaveAll is leave for a job and its ancestors.
func (c *closingJobs) leaveAll(name string) {
	for name != "" {
		parent := c.jobs[name].parent
		c.leave(name)
		name = parent
	}
}

// expire drops jobs that clients did not read in time.
func (c *closingJobs) expire(now core.Instant) {
	for len(c.order) > 0 {
		if at := c.order[0]; !c.isPast(at) && c.jobs[at.name].expires > now {
			return
		}
		c.dropOldest()
	}
}

// maxAncestors is the maximum number of ancestors that a client may read after the end of a job.
const maxAncestors = 100

// rememberClosing keeps the jobs that a client will read after the end of a job: the job, and its ancestors, which may
// end with it.
func (s *session) rememberClosing(namespace string, ref core.Ref) {
	f := s.front
	r := s.whole(ref)
	for n := 0; r != nil && n <= maxAncestors; n++ {
		j := closingJob{
			raw: f.encodeJob(namespace, r.Job, r.Info.Queue, r.Info.Type, r.Info.Fails), queue: r.Info.Queue,
		}
		name := namespace + ":" + r.Job.Identity()
		if r = s.whole(core.Ref{Seq: r.Job.Parent}); r != nil {
			j.parent = namespace + ":" + r.Job.Identity()
		}
		f.mu.Lock()
		f.closing.put(name, j, f.broker.Now())
		f.mu.Unlock()
	}
}

// get key
func get(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	switch k.kind {
	case keyJob:
		if raw := s.activeJob(k); raw != nil {
			return redcon.AppendBulk(b, raw)
		}
		return redcon.AppendNull(b)
	case keyCounter:
		return s.getCounter(b, k)
	}
	return refuseKey(b, args[1])
}

// activeJob returns a job that was popped and is not closed; nil: none.
func (s *session) activeJob(k key) []byte {
	if known := s.inspect(k.name); known != nil && isActive(known.Info) {
		r := s.whole(core.Ref{Seq: known.Seq})
		if r == nil || !s.mayHave(r.Info.Queue) {
			return nil
		}
		return s.front.encodeJob(k.namespace, r.Job, r.Info.Queue, r.Info.Type, r.Info.Fails)
	}
	s.front.mu.Lock()
	j := s.front.closing.jobs[k.namespace+":"+k.name]
	s.front.mu.Unlock()
	if !s.mayHave(j.queue) {
		return nil
	}
	return j.raw
}

// mayHave reports whether the client may see the jobs of a queue: as a worker or a reader of it.
func (s *session) mayHave(queue string) bool {
	p := s.Principal()
	return p.May(access.Consume, queue) || p.May(access.Read, queue)
}

// whole returns a job with its body, without a check of rights; nil if it does not exist.
func (s *session) whole(ref core.Ref) *core.Reply {
	if ref == (core.Ref{}) {
		return nil
	}
	r := *s.unguarded(&core.Inspect{Tag: 1, Ref: ref})
	if r.Kind != core.Inspected || r.Job == nil {
		return nil
	}
	return &r
}

// isActive reports whether a job runs, or has run and waits for its children.
func isActive(i *core.JobInfo) bool {
	return i.State == core.Leased || i.State == core.Done && i.Children > 0
}

// del key...: the last step of a close, or the first of a failure.
func del(s *session, b []byte, args []string) []byte {
	removed := 0
	for _, text := range args[1:] {
		k := parseKey(text)
		switch k.kind {
		case keyJob:
			if s.beginPipeline(k.name) || s.forgetClosing(k) {
				removed++
			}
		case keyChildren, keyHeirs, keyOpen: // children and heirs survive a failed attempt of the parent
		case keyCounter:
			if s.removeCounter(k) {
				removed++
			}
		default:
			return refuseKey(b, text)
		}
	}
	return redcon.AppendInt(b, int64(removed))
}

func (s *session) leaveActive(k key, uuid string) bool {
	name := k.namespace + ":" + uuid
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	return s.mayHave(s.front.closing.jobs[name].queue) && s.front.closing.leaveActive(name)
}

func (s *session) forgetClosing(k key) bool {
	name := k.namespace + ":" + k.name
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	if j, found := s.front.closing.jobs[name]; !found || !s.mayHave(j.queue) {
		return false
	}
	return s.front.closing.leave(name)
}

// rpop key: the broker itself releases children and heirs, so none are left for the client.
func rpop(s *session, b []byte, args []string) []byte {
	switch k := parseKey(args[1]); k.kind {
	case keyChildren, keyHeirs:
		return redcon.AppendNull(b)
	}
	return refuseKey(b, args[1])
}
