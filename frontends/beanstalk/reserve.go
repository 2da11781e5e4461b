package beanstalk

import (
	"math"
	"time"

	"broker/core"
)

// noTimeout is the timeout of a reserve without a timeout.
const noTimeout = time.Duration(math.MaxInt64)

// lastSecond is the part of a lease in which reserve returns DEADLINE_SOON.
const lastSecond = time.Second

// reserving is the reserve that a session is blocked on.
type reserving struct {
	tag   uint64       // zero: none
	until core.Instant // its own timeout; zero: none
	reads bool         // it has a job whose body is being read from disk
}

// take reserves a job of the watched tubes. It waits until timeout.
func (s *session) take(p *pipeline, timeout time.Duration) {
	s.Flush() // brings the leases of the session up to date
	s.countWorker()
	s.wait = reserving{}
	if timeout != noTimeout {
		s.wait.until = s.front.broker.Now().Add(timeout)
	}
	s.lease(p)
}

// lease asks for a job until the timeout, or until the last second of a lease of the client begins.
func (s *session) lease(p *pipeline) {
	now := s.front.broker.Now()
	until := s.wait.until
	if until == 0 {
		until = now.Add(24 * time.Hour)
	}
	if soon := s.soon(now); soon != 0 && soon < until {
		until = soon
	}
	if until <= now || s.HalfClosed {
		until = 0
	}
	op := p.Leases.Next()
	*op = core.Lease{
		Queues: s.watchedQueues(), Pick: core.PickFirst, Holder: core.HeldByConn, Deadline: until, Late: !s.HalfClosed,
	}
	op.Tag = p.Expect(pending{answer: answerReserve})
	s.wait.tag = op.Tag
	p.Ask(op)
	p.MarkDue()
}

// noteSoon records the end of a lease of the client; zero: none.
func (s *session) noteSoon(until core.Instant) {
	if at := until.Add(-lastSecond); until != 0 && (s.soonAt == 0 || at < s.soonAt) {
		s.soonAt = at
	}
}

// soon is a time at or before the start of the last second of the client's next ending lease; zero if there is none.
// When that time comes, soon is recomputed exactly, without ended leases.
func (s *session) soon(now core.Instant) core.Instant {
	if s.soonAt == 0 || now < s.soonAt {
		return s.soonAt
	}
	s.soonAt = 0
	for seq, l := range s.held {
		if l.until == 0 {
			continue
		}
		isSoon := l.until.Add(-lastSecond) <= now
		if l.until <= now || isSoon && !s.stillHolds(seq) {
			delete(s.held, seq)
			continue
		}
		if s.noteSoon(l.until); isSoon {
			break // one is enough, because a client may hold very many
		}
	}
	return s.soonAt
}

// stillHolds reports whether the client still holds a job. Other clients may have cancelled or moved it.
func (s *session) stillHolds(seq uint64) bool {
	op := &core.Report{Ref: core.Ref{Seq: seq}, Authority: core.ByHolder, Heartbeat: true}
	for _, r := range s.front.broker.Do(s.Client, []core.Op{op}, nil) {
		if r.Kind == core.Accepted {
			return true
		}
	}
	return false
}

// answerReserve writes the job, DEADLINE_SOON or TIMED_OUT. It waits again if the wait ended because of a lease that
// the client has lost or extended in the meantime.
func answerReserve(s *session, b []byte, _ *pending, r *core.Reply) ([]byte, bool) {
	now := s.front.broker.Now()
	switch soon := s.soon(now); {
	case r.Kind == core.Assigned:
		s.leased(r.Seq, &r.Lease, r.Job)
		b = appendJob(b, "RESERVED", r.Seq, r.Job.Body)
	case soon != 0 && soon <= now:
		b = append(b, deadlineSoon...)
	case !s.HalfClosed && (s.wait.until == 0 || now < s.wait.until):
		s.again = true
		return b, false
	default:
		b = append(b, timedOut...)
	}
	s.endWait()
	return b, true
}

// beginWait counts a waiting connection; endWait uncounts it.
func (s *session) beginWait() {
	if !s.waits {
		s.waits = true
		s.front.waiting.Add(1)
		s.eachWatched(func(t *tube) { t.waiting++ })
	}
}

func (s *session) endWait() {
	s.wait = reserving{}
	if s.waits {
		s.waits = false
		s.front.waiting.Add(-1)
		s.eachWatched(func(t *tube) { t.waiting-- })
	}
}

func (s *session) eachWatched(fn func(*tube)) {
	for _, name := range s.watched {
		s.front.tubes.change(name, fn)
	}
}
