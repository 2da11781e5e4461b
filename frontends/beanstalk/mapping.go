package beanstalk

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"broker/core"
)

// usualPri is the pri of jobs of normal priority.
const usualPri = 1024

// priorityOf converts a pri to a priority of the core.
func priorityOf(pri uint64) int64 { return usualPri - int64(pri) }

// priOf converts the priority of a job of any protocol to a pri.
func priOf(priority int64) uint64 {
	return uint64(min(max(usualPri-priority, 0), math.MaxUint32))
}

// newJob makes the job of a put.
func (s *session) newJob(pri, delay, ttr uint64, body []byte) *core.Job {
	job := &core.Job{
		Origin: core.Beanstalk, Queue: s.usedQueue(), Body: bytes.Clone(body), Priority: priorityOf(pri),
		LeaseFor: leaseFor(ttr), Own: core.PolicyLeaseFor,
		Exhausted: core.ExhaustedBury, SeqOrder: true, Tallies: core.TallyMoves,
	}
	if delay > 0 {
		job.ReadyAt = s.front.broker.Now().Add(seconds(delay))
	}
	job.Attributes = attributes{Delay: delay, TTR: attributeTTR(ttr)}.encode()
	if s.front.opts.Namespace != "" {
		job.Type = s.used
	}
	if s.front.opts.Route != nil {
		queue, typ := s.front.opts.Route(s.used, s.used)
		if queue != s.used {
			job.Queue = queue
		}
		job.Type = typ
	}
	return job
}

// maxLease is the longest lease that the core stores exactly, about 49 days.
const maxLease = (math.MaxUint32 - 1) * time.Millisecond

// attributeTTR is the ttr if it is longer than the job's lease can be, else zero.
func attributeTTR(ttr uint64) uint64 {
	if seconds(ttr) > maxLease {
		return ttr
	}
	return 0
}

// leaseFor is the duration of a ttr. 0 counts as 1.
func leaseFor(ttr uint64) time.Duration { return min(seconds(max(ttr, 1)), maxLease) }

// attributes are the job fields of this protocol that the core does not know.
type attributes struct {
	Delay uint64 `json:"delay,omitempty"` // last requested delay, in seconds
	TTR   uint64 `json:"ttr,omitempty"`   // see attributeTTR
}

// encode writes the attributes; most jobs have none.
func (a attributes) encode() []byte {
	if a == (attributes{}) {
		return nil
	}
	b, _ := json.Marshal(a) // numbers never fail
	return b
}

// attributesOf reads the attributes of a job of this protocol.
func attributesOf(j *core.Job) (a attributes) {
	if j == nil || j.Origin != core.Beanstalk || len(j.Attributes) == 0 || json.Unmarshal(j.Attributes, &a) != nil {
		return attributes{}
	}
	return a
}

// ttrOf returns the ttr of a job of any protocol, in seconds. An attribute is out of date if another client has changed
// the lease.
func ttrOf(j *core.Job) uint64 {
	if a := attributesOf(j); j.LeaseFor == maxLease && a.TTR > 0 {
		return a.TTR
	}
	return wholeSeconds(j.LeaseFor)
}

// lease is a job that the connection holds.
type lease struct {
	until    core.Instant  // its end; zero: none
	span     time.Duration // duration of its ttr; zero: none
	priority int64
	ours     bool // submitted over this protocol
	sent     attributes
}

// changed is the new priority for a pri from a client; nil if it equals the job's priority.
func (l *lease) changed(pri uint64) *int64 {
	if priOf(l.priority) == pri {
		return nil
	}
	p := priorityOf(pri)
	return &p
}

// leased remembers a job that the client receives.
func (s *session) leased(seq uint64, g *core.Grant, j *core.Job) {
	l := lease{span: g.LeaseFor, priority: j.Priority, ours: j.Origin == core.Beanstalk, sent: attributesOf(j)}
	if g.LeaseFor > 0 {
		l.until = g.LeasedAt.Add(g.LeaseFor)
	}
	if s.held == nil {
		s.held = make(map[uint64]lease)
	}
	s.held[seq] = l
	s.noteSoon(l.until)
}

func answerPut(_ *session, b []byte, _ *pending, r *core.Reply) ([]byte, bool) {
	return appendNumber(b, "INSERTED", r.Seq), true
}

func answerPeek(_ *session, b []byte, _ *pending, r *core.Reply) ([]byte, bool) {
	if r.Info.State == core.Done || r.Info.Job == nil {
		return append(b, notFound...), true
	}
	return appendJob(b, "FOUND", r.Seq, r.Info.Job.Body), true
}

func answerFirst(_ *session, b []byte, _ *pending, r *core.Reply) ([]byte, bool) {
	if len(r.Jobs) == 0 || r.Jobs[0].Job == nil {
		return append(b, notFound...), true
	}
	return appendJob(b, "FOUND", r.Jobs[0].Seq, r.Jobs[0].Job.Body), true
}

// answerDelete handles up to two replies: to Complete, if the client held the job, and to Cancel, for jobs without a
// lease, unless the client is a worker that may not delete others.
func answerDelete(s *session, b []byte, p *pending, _ *core.Reply) ([]byte, bool) {
	if _, held := s.held[p.seq]; held {
		delete(s.held, p.seq)
	} else {
		s.note("job.delete", strconv.FormatUint(p.seq, 10), "")
	}
	return append(b, deleted...), true
}

func answerRelease(s *session, b []byte, p *pending, _ *core.Reply) ([]byte, bool) {
	delete(s.held, p.seq)
	return append(b, released...), true
}

func answerBury(s *session, b []byte, p *pending, _ *core.Reply) ([]byte, bool) {
	delete(s.held, p.seq)
	return append(b, buried...), true
}

func answerTouch(s *session, b []byte, p *pending, _ *core.Reply) ([]byte, bool) {
	if l := s.held[p.seq]; l.span > 0 {
		l.until = s.front.broker.Now().Add(l.span)
		s.held[p.seq] = l
		s.noteSoon(l.until)
	}
	return append(b, touched...), true
}

func answerKickJob(_ *session, b []byte, _ *pending, _ *core.Reply) ([]byte, bool) {
	return append(b, kicked...), true
}

// answerReserveJob reads the job that the connection now holds, without a check of the principal's rights. It asks as
// a client of its own, because the replies of the session's client are being answered. The answer waits for the commit
// of the lease, which covers the job as it was leased. Only a change of the job since then is not covered.
func answerReserveJob(s *session, b []byte, _ *pending, r *core.Reply) ([]byte, bool) {
	for _, job := range core.DoOnce(s.front.broker.Unguarded(), core.Internal,
		&core.Inspect{Ref: core.Ref{Seq: r.Seq}}) {
		if job.Kind == core.Inspected && job.Info.Job != nil {
			s.leased(r.Seq, &r.Lease, job.Info.Job)
			return appendJob(b, "RESERVED", r.Seq, job.Info.Job.Body), true
		}
	}
	return append(b, notFound...), true
}
