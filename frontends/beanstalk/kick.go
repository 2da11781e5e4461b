package beanstalk

import (
	"math"

	"broker/core"
	"broker/frontends/access"
)

// kicking is a kick that runs. It kicks a limited number of jobs in each turn of the event loop, and waits until they are durable
// before the next turn, so that neither the loop nor a large commit holds up other connections. The connection reads no further
// command until the kick is answered.
type kicking struct {
	order  core.Order
	bound  uint64 // number of jobs to kick at most
	done   uint64 // number of jobs kicked
	commit core.Commit
}

// kickStep is the number of jobs that one turn kicks.
const kickStep = 1000

func (s *session) kick(p *pipeline, a *args) {
	bound := a.number(math.MaxUint32)
	if !a.end() {
		p.say(badFormat)
		return
	}
	s.count(verbKick)
	s.flush(p)
	if !access.AllowedFor(s.front.broker, s.client, access.Operate, s.usedQueue()) {
		p.say(unknown)
		return
	}
	s.kicks = s.newKick(bound)
	s.stepKick()
}

// newKick plans a kick of the buried jobs, or of the delayed jobs if none is buried. It counts the jobs first: a kick must end
// although workers may bury the kicked jobs again.
func (s *session) newKick(bound uint64) *kicking {
	k := &kicking{order: core.OrderDied}
	for _, r := range s.front.internal(&core.InspectQueue{Queue: s.usedQueue()}) {
		if len(r.Queues) == 1 {
			i := &r.Queues[0]
			jobs := i.Dead
			if jobs == 0 {
				k.order, jobs = core.OrderDue, i.Scheduled+i.Retrying
			}
			k.bound = min(bound, uint64(jobs)) //nolint:gosec // a count
		}
	}
	return k
}

// stepKick kicks the next jobs. It answers the command when all are kicked. Otherwise another turn comes with the commit.
func (s *session) stepKick() {
	b := s.front.broker
	if s.kicks.commit > b.Committed() && !b.Stopped() {
		return
	}
	if b.Stopped() || !s.kickSome(s.kicks) {
		s.stopKick()
		return
	}
	if s.kicks.commit <= b.Committed() { // its wake may have come before
		s.conn.Wake()
	}
}

// stopKick answers the running kick with the number of jobs kicked so far.
func (s *session) stopKick() {
	if k := s.kicks; k != nil {
		s.kicks = nil
		out := s.conn.Out()
		out.Put(appendNumber(out.Buf(), "KICKED", k.done), k.commit)
	}
}

// kickSome makes the next jobs of the used tube ready. It reports whether there may be more to kick.
func (s *session) kickSome(k *kicking) (more bool) {
	if k.bound == 0 {
		return false
	}
	found, next := s.first(k.order, int(min(k.bound-k.done, kickStep)), "") //nolint:gosec // small
	ops := make([]core.Op, len(found))
	for i := range found {
		ops[i] = &core.Enqueue{Ref: core.Ref{Seq: found[i].Seq}, If: core.InState(found[i].State)}
	}
	before := k.done
	for _, r := range s.do(ops...) {
		if r.Kind == core.Accepted {
			k.done++
			k.commit = max(k.commit, r.Commit)
		}
	}
	return next != "" && k.done > before && k.done < k.bound
}
