package beanstalk

import (
	"math"

	"broker/access"
	"broker/core"
)

// kicking is a kick that runs. After each step it waits until the jobs are durable, so that no large commit holds up
// other connections.
type kicking struct {
	order  core.Order
	bound  uint64      // number of jobs to kick at most
	done   uint64      // number of jobs kicked
	commit core.Commit // of the jobs kicked
	read   core.Commit // that the answer depends on because of what was read
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
	s.Flush()
	if !s.AllowedFor(access.Operate, s.usedQueue()) {
		p.say(unknown)
		return
	}
	s.start(s.newKick(bound))
}

// newKick plans a kick of the buried jobs, or of the delayed jobs if none is buried. It counts the jobs first: a kick
// must end although workers may bury the kicked jobs again.
func (s *session) newKick(bound uint64) *kicking {
	k := &kicking{order: core.OrderDied}
	i, commit := s.queueInfo(s.usedQueue())
	k.read = commit
	if i != nil {
		jobs := i.Dead
		if jobs == 0 {
			k.order, jobs = core.OrderDue, i.Scheduled+i.Retrying
		}
		k.bound = min(bound, uint64(jobs))
	}
	return k
}

// step implements task: it kicks the next jobs. Another turn comes with their commit.
func (k *kicking) step(s *session) (over bool) {
	b := s.front.broker
	if k.commit > b.Committed() && !b.Stopped() {
		return false
	}
	if b.Stopped() || !s.kickSome(k) {
		k.stop(s)
		return true
	}
	if k.commit <= b.Committed() { // its wake may have come before
		s.Conn.Wake()
	}
	return false
}

// stop implements task: it answers with the number of jobs kicked so far.
func (k *kicking) stop(s *session) {
	out := s.Conn.Out()
	out.Put(appendNumber(out.Buf(), "KICKED", k.done), max(k.commit, k.read))
}

// kickSome makes the next jobs of the used tube ready. It reports whether there may be more to kick.
func (s *session) kickSome(k *kicking) bool {
	if k.bound == 0 {
		return false
	}
	found, more, commit := s.first(k.order, int(min(k.bound-k.done, kickStep)))
	k.read = max(k.read, commit)
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
	return more && k.done > before && k.done < k.bound
}
