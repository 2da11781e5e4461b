package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// job is the known state of a job.
type job struct {
	seq      uint64
	id       string
	queue    string
	typ      string
	priority int64
	state    core.State
	readyAt  core.Instant
	worker   string
	attempts uint32
	fails    uint32
	cost     uint32
	tags     []string
	unique   string
	waiting  []uint64 // blocked: waits for these jobs
}

// world is all jobs and settings as of an entry.
type world struct {
	now    core.Instant
	jobs   map[uint64]*job
	leased map[uint64]*job    // those of the jobs that are leased
	meta   map[string][]byte  // limits and settings of queues
	shared map[string]*shared // limits across queues, by name
	names  map[string]string  // interned queues and types

	settings map[string]rules // of queues, in the present settings

	looked int // counts the jobs that explanations have looked at to say why a job was passed
}

func newWorld() *world {
	return &world{
		jobs: map[uint64]*job{}, leased: map[uint64]*job{}, meta: map[string][]byte{}, shared: map[string]*shared{},
		names: map[string]string{},
	}
}

// load fills the world from a store.
func (w *world) load(ctx context.Context, s *store.Store) error {
	w.now = s.Position().At
	if err := s.Scan(ctx, nil, func(r *record.Record) error {
		w.put(r.Job.Seq, r.Job, r.Status)
		return nil
	}); err != nil {
		return err
	}
	return s.ScanMeta("", func(name string, value []byte) error {
		w.set(core.MetaEntry{Name: name, Value: value})
		return nil
	})
}

// set applies a metadata entry if it belongs to a queue or a limit.
func (w *world) set(m core.MetaEntry) {
	if strings.HasPrefix(m.Name, limit.SharedPrefix) {
		w.setShared(m)
		return
	}
	if !strings.HasPrefix(m.Name, limit.RulesPrefix) && !strings.HasPrefix(m.Name, queuePrefix) {
		return
	}
	if m.Value == nil {
		delete(w.meta, m.Name)
		return
	}
	w.meta[strings.Clone(m.Name)] = append([]byte(nil), m.Value...)
}

// put applies a change of a job.
func (w *world) put(seq uint64, j *core.Job, st *record.Status) *job {
	x := w.jobs[seq]
	if x == nil {
		if j == nil {
			return nil // it was removed, or the archive lacks its beginning
		}
		x = &job{seq: seq}
		w.jobs[seq] = x
	}
	if j != nil {
		x.id, x.queue, x.typ, x.priority = strings.Clone(j.Identity()), w.name(j.Queue), w.name(j.Type), j.Priority
		x.cost, x.unique, x.tags = j.Cost, strings.Clone(j.UniqueKey), nil
		for _, tag := range j.Tags {
			x.tags = append(x.tags, w.name(tag))
		}
		x.readyAt, x.waiting = cmp.Or(j.ReadyAt, j.CreatedAt), j.After
		if j.Parent != 0 {
			x.waiting = append([]uint64{j.Parent}, x.waiting...)
		}
		switch {
		case len(x.waiting) > 0:
			x.state = core.Blocked
		case j.ReadyAt > w.now:
			x.state = core.Scheduled
		default:
			x.state = core.Ready
		}
	}
	if st != nil {
		x.state, x.attempts, x.fails = st.State, st.Attempts, st.Fails
		x.worker, x.waiting = strings.Clone(st.Worker), append([]uint64(nil), st.Waiting...)
		x.readyAt = cmp.Or(st.ReadyAt, x.readyAt)
		if st.Moved != nil && st.Moved.Queue != "" {
			x.queue = w.name(st.Moved.Queue)
		}
	}
	if x.state == core.Leased {
		w.leased[seq] = x
	} else {
		delete(w.leased, seq)
	}
	return x
}

// remove removes a job.
func (w *world) remove(seq uint64) {
	delete(w.jobs, seq)
	delete(w.leased, seq)
}

// name returns the only copy of the name of a queue or type.
func (w *world) name(s string) string {
	if known, ok := w.names[s]; ok {
		return known
	}
	s = strings.Clone(s)
	w.names[s] = s
	return s
}

// stateOf returns the current state of a job. Changes by the passing of time or the end of another job are not
// stored.
func (w *world) stateOf(x *job) core.State {
	switch {
	case (x.state == core.Scheduled || x.state == core.Retrying) && x.readyAt <= w.now:
		return core.Ready
	case x.state == core.Blocked && len(x.waiting) > 0:
		for _, seq := range x.waiting {
			if other := w.jobs[seq]; other != nil && other.state != core.Done {
				return core.Blocked
			}
		}
		return core.Ready
	}
	return x.state
}

// ahead reports whether a is handed out before b: by priority, then by the time it became ready. It ignores limits
// and sharing.
func ahead(a, b *job) bool {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.readyAt, b.readyAt), cmp.Compare(a.seq, b.seq)) < 0
}

// queueCounts counts the jobs of a queue, as seen from one job.
type queueCounts struct{ higher, earlier, behind, leased int }

func (w *world) around(x *job) (c queueCounts) {
	for _, o := range w.jobs {
		if o == x || o.queue != x.queue {
			continue
		}
		switch w.stateOf(o) {
		case core.Leased:
			c.leased++
		case core.Ready:
			switch {
			case o.priority > x.priority:
				c.higher++
			case ahead(o, x):
				c.earlier++
			default:
				c.behind++
			}
		case core.Gone, core.Scheduled, core.Blocked, core.Retrying, core.Done, core.Dead:
		}
	}
	return c
}

// queuePrefix is the prefix of the names of queue settings.
const queuePrefix = "core/queue/"

// paused reports whether a queue is paused.
func (w *world) paused(queue string) bool {
	var k struct {
		Paused bool         `json:"paused"`
		Until  core.Instant `json:"paused_until"`
	}
	if json.Unmarshal(w.meta[queuePrefix+queue], &k) != nil {
		return false // nothing is set
	}
	return k.Paused && (k.Until == 0 || k.Until > w.now)
}
