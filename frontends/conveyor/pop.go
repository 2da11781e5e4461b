package conveyor

import (
	"math"
	"strconv"
	"time"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
)

// pop is a BRPOP that waits for its reply.
type pop struct {
	tag  uint64
	keys map[string]string // keys as the client has sent them, by the broker's queue
}

// maxPopKeys limits the queues of one BRPOP.
const maxPopKeys = 1024

// brpop key... timeout: a lease that ends with the connection, until the worker has confirmed it with its name.
func brpop(s *session, b []byte, args []string) []byte {
	keys := args[1 : len(args)-1]
	seconds, err := strconv.ParseFloat(args[len(args)-1], 64)
	switch {
	case err != nil || math.IsNaN(seconds) || math.IsInf(seconds, 0):
		return redcon.AppendError(b, "ERR timeout is not a float or out of range")
	case seconds < 0:
		return redcon.AppendError(b, "ERR timeout is negative")
	case len(keys) > maxPopKeys:
		return redcon.AppendError(b, "ERR too many keys")
	}
	wait := &pop{keys: make(map[string]string, len(keys))}
	queues := make([]string, 0, len(keys))
	for _, text := range keys {
		k := parseKey(text)
		if k.kind != keyQueue {
			return refuseKey(b, text)
		}
		queue := s.front.queueOf(k.namespace, k.name)
		if _, twice := wait.keys[queue]; !twice {
			wait.keys[queue] = text
			queues = append(queues, queue)
		}
	}
	s.tag++
	wait.tag, s.waiting = s.tag, wait
	op := &core.Lease{
		Tag: wait.tag, Queues: queues, Pick: core.PickInOrder, Holder: core.HeldByConn, Late: true, KeepQueues: true,
		Deadline: deadline(s.front.broker.Now(), seconds),
	}
	s.replies = s.Do(s.front.broker, []core.Op{op}, s.replies[:0])
	for i := range s.replies {
		s.leased(&s.replies[i])
	}
	return b
}

// deadline is the end of a wait in seconds. A wait of zero never ends.
func deadline(now core.Instant, seconds float64) core.Instant {
	const longest = 1e9 // seconds: some thirty years
	if seconds == 0 || seconds > longest {
		seconds = longest
	}
	return now.Add(time.Duration(seconds * float64(time.Second)))
}

// leased writes the reply to the waiting BRPOP.
func (s *session) leased(r *core.Reply) {
	p := s.waiting
	if p == nil || r.Tag != p.tag || r.Kind == core.Reading {
		return
	}
	s.waiting = nil
	defer s.Conn.Wake() // to process the input behind it
	if r.Kind == core.Failed {
		s.Reply(refuseError(nil, r.Err))
		return
	}
	if r.Kind != core.Assigned { // timed out
		s.Reply(appendNoJob(nil))
		return
	}
	s.Reply(s.appendPopped(nil, p, r))
}

// appendPopped appends the key and the job.
func (s *session) appendPopped(b []byte, p *pop, r *core.Reply) []byte {
	text := p.keys[r.Job.Queue]
	raw := s.front.encodeJob(parseKey(text).namespace, r.Job, r.Job.Queue, r.Job.Type, r.Lease.Fails)
	return redcon.AppendBulk(redcon.AppendBulkString(redcon.AppendArray(b, 2), text), raw)
}

// appendNoJob is the reply to BRPOP after its timeout.
func appendNoJob(b []byte) []byte { return append(b, "*-1\r\n"...) }

// set key value [EX seconds]: the start of a job, or a counter.
func set(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	switch k.kind {
	case keyJob: // nothing to do: the lease shows that the job runs
		if len(args) != 3 {
			return redcon.AppendError(b, "ERR syntax error")
		}
		return redcon.AppendOK(b)
	case keyCounter:
		return s.setCounter(b, k, args[2:])
	}
	return refuseKey(b, args[1])
}

// sadd key member...
func sadd(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	added := 0
	for _, uuid := range args[2:] {
		switch k.kind {
		case keyWorkerJobs:
			r, isNew := s.confirm(k.name, uuid)
			if r.Kind == core.Failed {
				return refuseError(b, r.Err)
			}
			if isNew {
				added++
			}
		case keyActiveJobs, keyOpen: // nothing to do: both follow from the states of the jobs
			added++
		default:
			return refuseKey(b, args[1])
		}
	}
	return redcon.AppendInt(b, int64(added))
}

// confirm assigns the lease of a popped job to the worker. From then on its check-ins extend the lease. isNew is false
// if the worker has it already.
func (s *session) confirm(worker, uuid string) (r *core.Reply, isNew bool) {
	known := s.inspect(uuid)
	refused := func(err error) (*core.Reply, bool) { return &core.Reply{Kind: core.Failed, Err: err}, false }
	switch {
	case known == nil || known.Info.State != core.Leased:
		return refused(core.ErrNotLeased)
	case !s.AllowedFor(access.Consume, known.Info.Queue):
		return refused(core.ErrForbidden)
	case known.Info.Worker == worker:
		return known, false
	case known.Info.Worker != "":
		return refused(core.ErrNotHolder)
	}
	return s.ask(&core.TransferLease{
		Tag: 1, Ref: core.Ref{Seq: known.Seq}, Epoch: known.Info.Epoch, Worker: worker, LeaseFor: leaseFor,
	}), true
}
