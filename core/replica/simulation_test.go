package replica

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// The simulation runs engines on a log that does what a network and a lost lead can do to an entry: it arrives, arrives
// twice, arrives late, never arrives, or arrives although its leader gets no result. A second leader takes over while
// the first still believes that it leads. After every step all that was acknowledged must hold.

// world has some members, a log that all of them will see, and the replies that clients got.
type world struct {
	t      *testing.T
	random *rand.Rand
	clk    *coretest.Clock
	log    [][]byte // committed, in order; the index of the first is 2
	late   [][]byte // on their way
	term   uint64
	nodes  []*member
	jobs   int
	acked  map[string]bool   // submitted; true: its end was acknowledged too
	held   map[string]uint64 // leased by a worker whose lease continues: the term of the leader that granted it
	counts counts

	// byClock: leaders confirm replies without a commit by the clock, including leases; otherwise by a commit.
	byClock bool
}

// counts are what happened.
type counts struct{ acks, ends, leases, lost, refused, looks, unsaid int }

// member is a store, and an engine while the member leads or believes that it leads.
type member struct {
	w       *world
	store   *store.Store
	standby *engine.Standby // while it does not lead; entries arrive while it reads
	applied int             // entries of the log that it has seen
	engine  *engine.Engine
	client  core.ClientID
	epoch   uint64
	leaseTo core.Instant // until then no other member leads, as far as this one knows
}

// fakeJournal is the journal of one leader.
type fakeJournal struct {
	m     *member
	epoch uint64
	chain uint64
	ended bool
}

// Append implements engine.Journal.
func (j *fakeJournal) Append(e *record.Entry) error {
	if j.ended {
		return engine.ErrReplaced
	}
	e.Epoch, e.Chain, e.Format = j.epoch, j.chain, record.NewestFormat
	b, err := record.AppendEntry(nil, e)
	if err != nil {
		return err
	}
	w := j.m.w
	fate := w.random.IntN(40)
	switch {
	case fate == 0: // lost
	case fate == 1:
		w.late = append(w.late, b)
	default:
		w.log = append(w.log, b)
	}
	if fate == 2 {
		w.log = append(w.log, b) // twice
	}
	w.arrive()
	if fate <= 1 || fate == 3 { // 3: it is committed, but the leader does not know
		j.ended = true
		w.counts.lost++
		return fmt.Errorf("%w: unknown", engine.ErrReplaced)
	}
	at := len(w.log) - 1
	if fate == 2 {
		at--
	}
	if err := j.m.catchUp(at); err != nil {
		j.ended = true
		w.counts.refused++
		return fmt.Errorf("%w: %w", engine.ErrReplaced, err)
	}
	j.chain = record.ChainOf(b)
	return nil
}

// arrive delivers late entries from time to time.
func (w *world) arrive() {
	if len(w.late) > 0 && w.random.IntN(3) == 0 {
		// Not before the entry that its leader may just wait for: that one has its place already.
		w.log = append(w.log, w.late[0])
		w.late = w.late[1:]
	}
}

// catchUp applies the log up to an entry, and returns the result of that entry.
func (m *member) catchUp(to int) (err error) {
	for ; m.applied <= to; m.applied++ {
		err = m.store.Apply(m.w.log[m.applied], uint64(m.applied+2))
		if err != nil && !errors.Is(err, store.ErrSequence) {
			m.w.t.Fatalf("entry %d: %v", m.applied, err)
		}
	}
	return err
}

// follow keeps an index while the member does not lead.
func (m *member) follow() { m.standby = engine.NewStandby(m.store, m.w.clk, func(int) {}) }

// lead makes a member the leader. The previous leader does not learn of it.
func (m *member) lead() {
	w := m.w
	if m.engine != nil {
		m.engine.Abandon()
		if err := m.engine.Shutdown(); err != nil {
			w.t.Fatal(err)
		}
		m.engine = nil
		m.follow()
	}
	w.term++
	if w.byClock {
		w.clk.Advance(waitFor)
	}
	for range 100 {
		if m.applied < len(w.log) {
			_ = m.catchUp(len(w.log) - 1) // errors of earlier entries; the last one may have been refused
		}
		at := m.store.Position()
		j := &fakeJournal{m: m, epoch: w.term, chain: at.Chain}
		err := j.Append(&record.Entry{
			Position: record.Position{Number: at.Number + 1, At: w.clk.Now()}, Prev: at.Number,
			Batch: &record.CommitBatch{},
		})
		if err != nil {
			w.term++
			continue
		}
		e, err := engine.Open(engine.Options{
			Replicated: m.replicated(j), Clock: w.clk, Seed: w.random.Uint64() | 1,
			ManualCommits: true, ManualTimers: true,
		})
		if err != nil {
			m.standby.Stop()
			m.follow()
			continue // the first commit met its fate
		}
		m.engine, m.standby, m.epoch = e, nil, j.epoch
		m.client = e.Open(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}})
		return
	}
	w.t.Fatal("no member can lead")
}

// replicated returns the engine.Replicated for a leader.
func (m *member) replicated(j *fakeJournal) *engine.Replicated {
	r := &engine.Replicated{
		Store: m.store, Journal: j, Standby: m.standby, CommitLeases: !m.w.byClock, Term: j.epoch,
	}
	if m.w.byClock {
		r.Holds = func() bool { return m.w.clk.Now() < m.leaseTo }
	}
	return r
}

// do performs an operation; ok: the client has got the reply. A reply that can leave at once does not wait for a
// commit.
func (m *member) do(op core.Op) (r core.Reply, ok bool) {
	replies := m.engine.Do(m.client, []core.Op{op}, nil)
	if len(replies) == 1 && replies[0].Commit > m.engine.Committed() || m.w.random.IntN(2) == 0 {
		m.engine.Flush()
	}
	if len(replies) != 1 || replies[0].Commit > m.engine.Committed() {
		return core.Reply{}, false
	}
	return replies[0], true
}

// look inspects a job, which changes nothing: the reply shows that the job exists.
func (w *world) look(m *member) {
	if len(w.acked) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(w.acked))
	id := ids[w.random.IntN(len(ids))]
	r, ok := m.do(&core.Inspect{Ref: core.Ref{ID: id}, Brief: true})
	if !ok {
		w.counts.unsaid++
		return
	}
	w.counts.looks++
	if r.Info != nil && r.Info.State.Unfinished() && w.acked[id] {
		w.t.Fatalf("%s is %v for a leader of term %d after its end was acknowledged", id, r.Info.State, m.epoch)
	}
}

// tell records that a job was handed to a worker. A lease that was replied before its commit may be lost with its
// leader, so the next leader may hand the job out again. The previous leader never does.
func (w *world) tell(m *member, id string) {
	w.counts.leases++
	if before := w.held[id]; before != 0 && (!w.byClock || m.epoch <= before) {
		w.t.Fatalf("%s is leased in term %d, and was leased in term %d", id, m.epoch, before)
	}
	if w.acked[id] {
		w.t.Fatalf("%s is leased after its end was acknowledged", id)
	}
	w.held[id] = m.epoch
}

// step is one action of a client at a member that believes that it leads.
func (w *world) step(m *member) {
	switch w.random.IntN(4) {
	case 0:
		w.jobs++
		id := fmt.Sprint("job-", w.jobs)
		r, ok := m.do(&core.Submit{Job: &core.Job{
			ID: id, Queue: "q", Type: "q", Origin: core.Faktory, Body: []byte(id),
		}})
		if ok && r.Kind == core.Submitted {
			w.acked[id] = false
			w.counts.acks++
		}
	case 1:
		r, ok := m.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
		if !ok || r.Kind != core.Assigned {
			return
		}
		w.tell(m, r.Job.ID)
	case 2:
		if len(w.held) == 0 {
			return
		}
		ids := slices.Sorted(maps.Keys(w.held))
		id := ids[w.random.IntN(len(ids))]
		r, ok := m.do(&core.Complete{Ref: core.Ref{ID: id}, Authority: core.ByAnyone})
		if ok && r.Kind == core.Accepted {
			if _, known := w.acked[id]; known {
				w.acked[id] = true
			}
			delete(w.held, id)
			w.counts.ends++
		}
	case 3:
		w.look(m)
	}
}

// check compares a new leader with everything that was acknowledged.
func (w *world) check(m *member) {
	if err := m.engine.Check(); err != nil {
		w.t.Fatal(err)
	}
	for id, ended := range w.acked {
		r, ok := m.do(&core.Inspect{Ref: core.Ref{ID: id}, Brief: true})
		if !ok {
			return // its entry met its fate
		}
		there := r.Info != nil && r.Info.State.Unfinished()
		if ended && there {
			w.t.Fatalf("%s is back, %v, after its end was acknowledged", id, r.Info.State)
		}
		// the end of a held job may be committed although no client got the reply
		if !ended && !there && w.held[id] == 0 {
			w.t.Fatalf("%s was acknowledged and is lost: %+v", id, r)
		}
	}
}

func TestEveryAppendOutcomeKeepsAcknowledgedJobs(t *testing.T) {
	t.Parallel()
	var all counts
	for seed := range uint64(40) {
		w := &world{
			t: t, random: rand.New(rand.NewPCG(seed, 7)), clk: coretest.NewClock(), acked: map[string]bool{},
			held:    map[string]uint64{},
			byClock: seed%2 == 1,
		}
		for range 3 {
			s, err := store.Open(store.Options{Dir: "store", FS: coretest.MemoryFS(), Replicated: true})
			if err != nil {
				t.Fatal(err)
			}
			m := &member{w: w, store: s}
			m.follow()
			w.nodes = append(w.nodes, m)
		}
		leaders := []*member{w.nodes[0]}
		w.nodes[0].lead()
		for range 400 {
			m := leaders[w.random.IntN(len(leaders))]
			if newest := leaders[len(leaders)-1]; newest.engine.Stopped() || w.random.IntN(40) == 0 {
				next := w.nodes[w.random.IntN(len(w.nodes))]
				for i, old := range leaders {
					if old == next {
						leaders = append(leaders[:i:i], leaders[i+1:]...)
						break
					}
				}
				next.lead()
				leaders = append(leaders, next) // the other leaders still believe that they lead
				w.check(next)
				continue
			}
			if m == leaders[len(leaders)-1] {
				m.leaseTo = w.clk.Now().Add(leaseFor) // a majority has answered it
			}
			if !m.engine.Stopped() {
				w.step(m)
				w.clk.Advance(time.Millisecond)
			}
		}
		for _, m := range w.nodes {
			if m.engine != nil {
				m.engine.Abandon()
				if err := m.engine.Shutdown(); err != nil {
					t.Fatal(err)
				}
			}
			if m.applied < len(w.log) {
				_ = m.catchUp(len(w.log) - 1) // the last one may have been refused
			}
			if got, want := m.store.Position(), w.nodes[0].store.Position(); got != want {
				t.Fatalf("seed %d: stores at %+v and %+v", seed, got, want)
			}
		}
		for _, m := range w.nodes {
			if m.standby != nil {
				m.standby.Stop()
			}
			if err := m.store.Close(); err != nil {
				t.Fatal(err)
			}
		}
		all.acks += w.counts.acks
		all.ends += w.counts.ends
		all.leases += w.counts.leases
		all.lost += w.counts.lost
		all.refused += w.counts.refused
		all.looks += w.counts.looks
		all.unsaid += w.counts.unsaid
	}
	t.Logf("%+v", all)
	if all.acks < 1000 || all.ends < 200 || all.lost < 50 || all.refused < 20 || all.looks < 500 || all.unsaid < 20 {
		t.Errorf("too little happened: %+v", all)
	}
}
