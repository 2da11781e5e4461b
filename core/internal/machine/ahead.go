package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// Workers that empty a long queue would wait for one read of the store after another. The engine therefore reads the
// payloads of the next jobs together, before a worker asks for them, and the cache keeps them: Ahead says which,
// Refill takes them.

// AheadJobs is how many jobs are read ahead at once.
const AheadJobs = 64

// aheadBytes limits their size together.
const aheadBytes = 256 << 10

// Ahead is a job whose payload only the store has.
type Ahead struct {
	Seq   uint64
	epoch uint32
	Job   *core.Job // its payload, for Refill; nil: it could not be read
}

// Ahead returns those of the AheadJobs numbers from from on that are ready jobs whose payloads only the store has, as
// far as the cache has room.
func (m *Machine) Ahead(from uint64) (jobs []Ahead) {
	room := min(m.table.CacheRoom(), aheadBytes)
	for seq := from; seq < from+AheadJobs; seq++ {
		h := m.table.Handle(seq)
		if h == 0 {
			continue
		}
		e := m.table.At(h)
		if !m.mayRefill(h, e) {
			continue
		}
		if room -= table.LeastPayload + int(e.BodyBytes); room < 0 {
			return jobs
		}
		jobs = append(jobs, Ahead{Seq: seq, epoch: e.Epoch})
	}
	return jobs
}

// Refill keeps payloads in the cache, except those of jobs that have been changed or taken since Ahead.
func (m *Machine) Refill(jobs []Ahead) {
	for k := range jobs {
		j := &jobs[k]
		h := m.table.Handle(j.Seq)
		if h == 0 || j.Job == nil {
			continue
		}
		if e := m.table.At(h); e.Epoch == j.epoch && m.mayRefill(h, e) && m.table.CacheRoom() > 0 {
			j.Job.InQueue(m.queues[e.Queue].Name)
			m.table.SetPayload(h, j.Job)
		}
	}
}

func (m *Machine) mayRefill(h uint32, e *table.Entry) bool {
	return e.State == core.Ready && e.Has(table.PayloadStored) && !e.Unstored() && m.table.Payload(h) == nil
}
