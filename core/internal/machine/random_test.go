package machine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/machine"
)

// TestRandomOperationsKeepTheInvariants applies random operations of every kind and checks the machine after each. From
// time to time, it restores a second machine from the stored data, which must be in the same state. RANDOM_SEEDS is the
// number of histories (default 60), RANDOM_FIRST the first seed.
func TestRandomOperationsKeepTheInvariants(t *testing.T) {
	t.Parallel()
	number := func(name string, otherwise int) uint64 {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return uint64(n)
		}
		return uint64(otherwise)
	}
	first := number("RANDOM_FIRST", 1)
	for seed := first; seed < first+number("RANDOM_SEEDS", 60); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			l := newHistory(seed)
			for range 1200 {
				if err := l.step(); err != nil {
					t.Fatalf("%v\n%s", err, strings.Join(l.log, "\n"))
				}
			}
		})
	}
}

// history is a machine to which random operations are applied.
type history struct {
	rng         *rand.Rand
	clk         *coretest.Clock
	opts        machine.Options
	m           *machine.Machine
	store       *memStore
	clients     []core.ClientID
	protos      map[core.ClientID]core.Protocol
	seqs        []uint64 // of stored jobs, the newest last
	groups      []uint64
	queues      int
	clientCount int // clients at a time
	kinds       []kind
	// usualAdmin is the most frequent case of admin.
	usualAdmin int
	holds      map[core.ClientID]core.Holder // how a client leases
	byConn     map[uint64]bool               // jobs that a connection has held; their attempts are not always stored
	setBack    bool                          // the clock was set back
	log        []string
}

func newHistory(seed uint64) *history {
	l := &history{
		rng: rand.New(rand.NewPCG(seed, 3)), clk: coretest.NewClock(), store: newMemStore(), byConn: map[uint64]bool{},
	}
	l.opts = machine.Options{
		Persist: true, Await: true, DefaultLease: time.Minute, CacheBytes: 4000, Wakeup: int(seed%4) - 1,
		PoisonAfter: int(seed % 5), StartedAt: l.clk.Now(),
	}
	if seed%2 == 0 {
		l.opts.SortStep = 1 + l.rng.IntN(100)
	}
	if seed%3 != 0 {
		l.opts.LinkStep = 1 + int(seed%5)
	}
	l.setWeights()
	l.m = l.boot()
	l.connect()
	return l
}

// boot restores a machine from the store.
func (l *history) boot() *machine.Machine {
	l.opts.Random, l.opts.StartedAt = rand.New(rand.NewPCG(1, 1)), l.clk.Now()
	m := machine.New(l.opts)
	if err := l.store.load(m, l.clk.Now()); err != nil {
		panic(err)
	}
	c := m.OpenClient(0, core.ClientOptions{})
	m.Apply(l.clk.Now(), c, []core.Op{&core.ListSchedules{}})
	for _, s := range m.Take(c, nil)[0].Schedules {
		if s.FromConfig {
			s.NextAt = 0
			m.Apply(l.clk.Now(), c, []core.Op{&core.PutSchedule{Schedule: s}})
		}
	}
	m.CloseClient(l.clk.Now(), c)
	for m.Tick(l.clk.Now(), 100) {
	}
	return m
}

func (l *history) connect() {
	l.clients, l.protos, l.holds = nil, map[core.ClientID]core.Protocol{}, map[core.ClientID]core.Holder{}
	for range l.clientCount {
		l.open()
	}
}

func (l *history) open() {
	p := core.Protocols[l.rng.IntN(len(core.Protocols))]
	c := l.m.OpenClient(0, core.ClientOptions{Protocol: p})
	l.clients, l.protos[c], l.holds[c] = append(l.clients, c), p, core.Holder(l.rng.IntN(3))
}

func (l *history) note(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf(format, args...))
	l.log = l.log[max(0, len(l.log)-40):]
}

func (l *history) step() error {
	switch n := l.rng.IntN(100); {
	case n < 84:
		c := l.clients[l.rng.IntN(len(l.clients))]
		op := l.op(l.protos[c])
		if lease, is := op.(*core.Lease); is {
			lease.Holder = l.holds[c]
		}
		l.note("%v %T%+v", l.protos[c], op, op)
		if s, is := op.(*core.Submit); is {
			defer l.note("  %+v", s.Job)
		}
		l.store.apply(l.m, l.clk.Now(), c, op)
	case n < 90:
		d := time.Duration(l.rng.IntN(1+int(time.Second)<<l.rng.IntN(8))) * time.Nanosecond
		l.note("clock +%v", d)
		l.clk.Advance(d)
		for l.m.Tick(l.clk.Now(), 1+l.rng.IntN(5)) {
		}
	case n < 91:
		d := time.Duration(l.rng.IntN(7200)-3600) * time.Second
		if l.setBack = l.setBack || d < 0 && l.maybe(8); !l.setBack {
			d = max(d, -d)
		}
		l.note("clock set by %v", d)
		l.m.ClockSet(l.clk.Advance(d), core.Instant(d/time.Microsecond))
		for l.m.Tick(l.clk.Now(), 100) {
		}
	case n < 94:
		i := l.rng.IntN(len(l.clients))
		l.note("%v leaves", l.protos[l.clients[i]])
		l.m.CloseClient(l.clk.Now(), l.clients[i])
		l.clients = append(l.clients[:i], l.clients[i+1:]...)
		l.open()
	case n < 99:
		if err := l.commit(); err != nil {
			return err
		}
	default:
		if err := l.restart(); err != nil {
			return err
		}
	}
	if err := l.listen(); err != nil {
		return err
	}
	for _, r := range l.m.ScheduleRuns() {
		if r.Seq != 0 {
			l.seqs = append(l.seqs, r.Seq)
		}
	}
	return l.m.Check()
}

// listen takes the replies of most clients.
func (l *history) listen() error {
	for _, c := range l.clients {
		if l.rng.IntN(4) == 0 {
			continue
		}
		replies, needs := l.store.take(l.m, c)
		for i, r := range replies {
			if r.Seq != 0 && l.store.jobs[r.Seq] == nil && r.Job == nil && r.Outcome == nil {
				continue // it was removed from the store before the client looked; the engine says so
			}
			w, needed := needs[i]
			if err := l.store.complete(&r, w, needed); err != nil {
				return err
			}
			switch {
			case r.Kind == core.Assigned && l.holds[c] == core.HeldByConn:
				l.byConn[r.Seq] = true
			case r.Kind == core.Submitted && r.Commit != 0:
				l.seqs = append(l.seqs, r.Seq)
			case r.Kind == core.BatchReply && r.Batch == nil:
				l.groups = append(l.groups, r.Seq)
			}
			if r.Answer == nil {
				continue
			}
			for _, one := range r.Replies {
				if one.Kind == core.Failed {
					return fmt.Errorf("an operation of an accepted list was refused: %w", one.Err)
				}
				if one.Kind == core.Submitted && one.Commit != 0 {
					l.seqs = append(l.seqs, one.Seq)
				}
			}
		}
	}
	return nil
}

func (l *history) commit() error {
	l.note("commit")
	var s machine.Sealed
	l.m.Seal(&s)
	if _, err := l.store.put(&s.Batch); err != nil {
		return err
	}
	l.m.Committed(&s)
	return nil
}

// restart closes all clients, restores a machine from the stored data, compares the two, and continues with the new
// one.
func (l *history) restart() error {
	for _, c := range l.clients {
		l.m.CloseClient(l.clk.Now(), c)
	}
	l.store.apply(l.m, l.clk.Now(), l.m.OpenClient(0, core.ClientOptions{}), &core.Drain{})
	l.clk.Advance(time.Second) // runs of schedules that were refused are tried again
	for l.m.Tick(l.clk.Now(), 100) {
	}
	if err := l.commit(); err != nil {
		return err
	}
	again := l.boot()
	if err := again.Check(); err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	overdue := l.overdue(l.m)
	before, after := l.knows(l.m, overdue), l.knows(again, overdue)
	if l.setBack { // deadlines that have passed are due again
		before, after = nil, nil
	}
	for i := range max(len(before), len(after)) {
		if i >= len(before) || i >= len(after) || before[i] != after[i] {
			return fmt.Errorf("after a restart it knows\n%v\ninstead of\n%v", after[min(i, len(after)):],
				before[min(i, len(before)):])
		}
	}
	l.note("restart")
	l.m = again
	l.connect()
	l.byConn = map[uint64]bool{}
	return l.commit()
}

// overdue are the schedules whose last run was refused, by name. They are tried again within a second. A start tries
// them at once, and may find room in their queue that was freed in that second.
func (l *history) overdue(m *machine.Machine) map[string]bool {
	c, names := m.OpenClient(0, core.ClientOptions{Protocol: core.Internal}), map[string]bool{}
	m.Apply(l.clk.Now(), c, []core.Op{&core.ListSchedules{}})
	for _, s := range m.Take(c, nil)[0].Schedules {
		names[s.Name] = s.NextAt != 0 && s.NextAt <= l.clk.Now()
	}
	m.CloseClient(l.clk.Now(), c)
	return names
}

// knows returns the state that a restart must not change. The positions of the schedules in overdue do not count.
func (l *history) knows(m *machine.Machine, overdue map[string]bool) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Internal})
	ask := func(op core.Op) core.Reply {
		m.Apply(l.clk.Now(), c, []core.Op{op})
		return m.Take(c, nil)[0]
	}
	for _, seq := range l.seqs {
		r := ask(&core.Inspect{Ref: core.Ref{Seq: seq}})
		i := r.Info
		if i == nil || i.Ephemeral || i.Unstored {
			continue
		}
		if err := l.store.addInspected(&r, l.store.jobs[seq]); err != nil {
			panic(err)
		}
		if l.byConn[seq] {
			i.Attempts, i.Epoch = 0, 0
		}
		if i.State == core.Ready {
			i.ChangedAt = 0 // when it came back is not recorded
		}
		say("%d %v in %s at %d, since %d, expires %d, fails %d, attempts %d, broken %v, worker %q, "+
			"group %q, lost %d, epoch %d, priority %d, type %s, tags %v, body %d, attributes %s, failure %+v", seq,
			i.State, i.Queue,
			i.ReadyAt, i.ChangedAt, i.ExpiresAt, i.Fails, i.Attempts, i.Broken, i.Worker,
			i.FailureGroup, i.LostLeases, i.Epoch, i.Priority, i.Job.Type, i.Job.Tags, len(i.Job.Body),
			i.Job.Attributes, i.Failure)
	}
	for _, number := range l.groups {
		if g := ask(&core.InspectBatch{Batch: number}).Batch; g != nil {
			say("batch %+v", *g)
		}
	}
	for _, s := range ask(&core.ListSchedules{}).Schedules {
		if s.Job = nil; overdue[s.Name] {
			s.NextAt, s.LastAt, s.LastSeq, s.Runs, s.Recent = 0, 0, 0, 0, nil
		}
		say("schedule %+v", s)
	}
	limits := ask(&core.ListLimits{})
	for _, limit := range limits.Limits {
		if !limit.FromConfig {
			say("limit %+v", limit.Limit)
		}
	}
	for _, sharing := range limits.Sharings {
		if !sharing.FromConfig {
			say("sharing %+v", sharing)
		}
	}
	for i := range 5 {
		if q := ask(&core.InspectQueue{Queue: queue(i)}).Queues; len(q) == 1 {
			if q[0].Paused || q[0].Max != (core.QueueMax{}) {
				say("queue %s paused %v max %+v", q[0].Name, q[0].Paused, q[0].Max)
			}
		}
		say("mark %d is %s", i, ask(&core.ReadMeta{Name: fmt.Sprint("test/", i)}).Data)
	}
	m.CloseClient(l.clk.Now(), c)
	return all
}

func queue(i int) string { return "q" + strconv.Itoa(i) }
