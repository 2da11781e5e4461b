package sim

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"broker/core"
	"broker/core/engine"
	"broker/core/internal/index"
	"broker/core/internal/store/storetest"
)

// world is one simulated life: a disk, an engine on it, clients, and the model.
type world struct {
	core.NopListener
	seed     uint64
	number   int        // of the step
	rng      *rand.Rand // of the step
	clk      *clock
	disk     *storetest.Disk
	engine   *engine.Engine
	mode     engine.Durability
	model    *model
	clients  []*client
	listener listener
	refusing bool          // new jobs are refused
	observer core.ClientID // the simulation's own client
	// crashes happen between commits and keep all or none of the unsynced data, so background writes do not matter
	tidy      bool
	weights   []int // weights of the acts
	tag       uint64
	durable   *snapshot // content of the newest durable commit; nil if unknown
	sealing   *snapshot // content of the commit being written, or nil
	violation error     // the first one that was found where no error can be returned
	log       []string
	crashes   int
	focus     *promise // anyJob returns it, and new jobs wait for it; nil: none
	left      int      // how often the end of a job has left steps for later
	stored    storeOf
	shadow    *index.Index // follows the store, as on another node of a cluster; nil: none
	compared  int          // how often the shadow was compared with a fresh start

	announced core.Commit // the newest commit when the engine was last running
	newest    core.Commit // the newest commit of a reply since then
}

// client is one connection.
type client struct {
	id          core.ClientID
	kind        core.Protocol
	holds       core.Holder  // of its latest lease
	notReading  bool         // its replies are not fetched
	unreadSince core.Instant // replies that are fetched now are of this time or later; of the monotonic clock
	tag         uint64       // of its Sleep operation, while it sleeps
	held        []string     // queues that it keeps with HoldQueue
	able        []bool       // queues of its registrations, if it is a Gearman worker
}

// newWorld returns the world for a seed; every fourth world has relaxed durability.
func newWorld(seed uint64) (*world, error) {
	w := &world{seed: seed, clk: newClock(), disk: storetest.NewDisk(), model: newModel()}
	if seed%4 == 0 {
		w.mode = engine.Relaxed
	}
	w.begin(-1)
	w.setWeights()
	if err := w.open(); err != nil {
		return w, err
	}
	return w, w.orderSome()
}

// setWeights gives each life its own weights of acts. With the same weights in all lives, sequences of rare acts
// would hardly ever occur.
func (w *world) setWeights() {
	for _, a := range w.acts() {
		w.weights = append(w.weights, max(1, a.often*[]int{1, 2, 2, 2, 8}[w.rng.IntN(5)]/2))
	}
}

// begin derives the choices of a step from the seed and its number.
func (w *world) begin(step int) {
	w.number, w.rng = step, rand.New(rand.NewPCG(w.seed, uint64(step)))
}

// Options of the engine.
const (
	cacheBytes  = 20_000 // small, so that payloads are often read from the store
	poisonAfter = 3
)

func (w *world) open() error {
	e, err := engine.Open(engine.Options{
		Dir: "data", FS: w.disk.FS(), Clock: w.clk, Seed: 1, ManualTimers: true, ManualCommits: true,
		Durability: w.mode, CacheBytes: cacheBytes, PoisonAfter: poisonAfter, Listener: w, Archive: &w.stored,
		LinkStep: int(w.seed % 3),
	})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if ahead := e.Now().Sub(w.clk.Now()); ahead > 0 { // the time does not go back behind the last commit
		w.note("clock set by %v while the broker was down", ahead)
		w.clk.set(ahead)
	}
	w.engine, w.clients, w.sealing, w.durable, w.shadow = e, nil, nil, nil, nil
	w.refusing, w.newest = false, 0
	w.observer = e.Open(core.ClientOptions{Wake: func() {}})
	w.listen()
	for range 6 {
		w.connect()
	}
	if err := w.plansAfterCrash(w.announced); err != nil {
		return err
	}
	e.Tick()
	w.durable = w.snapshot()
	w.durable.number = e.Committed()
	return e.Check()
}

func (w *world) connect() {
	c := &client{kind: core.Protocols[1+w.rng.IntN(3)], unreadSince: nothingUnread}
	c.id = w.engine.Open(core.ClientOptions{Protocol: c.kind, Wake: func() {}})
	w.clients = append(w.clients, c)
	if c.kind == core.Gearman {
		c.able = []bool{true, true, true, false}
		for i, able := range c.able {
			if able {
				w.engine.Do(c.id, []core.Op{&core.Register{Queue: queueName(i)}}, nil)
			}
		}
	}
}

func queueName(i int) string { return "queue-" + string(rune('a'+i)) }

// Queues of the callbacks of batches.
const (
	completeQueue = "complete"
	successQueue  = "success"
)

// nothingUnread is client.unreadSince while a client reads.
const nothingUnread = core.Instant(math.MaxInt64)

// act is something that may happen, with its usual weight.
type act struct {
	often int
	do    func() error
}

func (w *world) acts() []act {
	return []act{
		{26, w.submit},
		{18, w.lease},
		{16, w.finish},
		{4, w.report},
		{2, w.release},
		{2, w.rerun},
		{2, w.resubmit},
		{4, w.appendLog},
		{1, w.auditLogs},
		{2, w.abilities},
		{6, w.control},
		{6, w.change},
		{3, w.atomic},
		{2, w.schedule},
		{3, w.await},
		{4, w.read},
		{5, w.batch},
		{1, w.purge},
		{1, w.flushAll},
		{2, w.settings},
		{2, w.policy},
		{1, w.moveSpent},
		{2, w.shareLimit},
		{1, w.refuse},
		{1, w.hold},
		{9, w.pass},
		{1, w.setClock},
		{4, w.reconnect},
		{2, w.disconnectUnread},
		{2, w.withdraw},
		{2, w.toggleReads},
		{1, w.audit},
		{9, w.flush},
		{3, w.slowSync},
		{2, w.crash},
		{1, w.damage},
		{3, w.fan},
		{1, w.failDisk},
		{16, w.followStore},
	}
}

// step does one random act and checks everything.
func (w *world) step() error {
	all := 0
	for _, often := range w.weights {
		all += often
	}
	n := w.rng.IntN(all)
	for i, a := range w.acts() {
		if n -= w.weights[i]; n >= 0 {
			continue
		}
		if err := a.do(); err != nil {
			return err
		}
		break
	}
	if err := w.overdue(); err != nil {
		return err
	}
	if w.violation != nil {
		return w.violation
	}
	return w.engine.Check()
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%4d  ", w.number)+fmt.Sprintf(format, args...))
}

func (w *world) anyClient() *client { return w.clients[w.rng.IntN(len(w.clients))] }

func (w *world) newTag() uint64 {
	w.tag++
	return w.tag
}

// ask runs an operation as the simulation's own client.
func (w *world) ask(op core.Op) core.Reply {
	all := w.engine.Do(w.observer, []core.Op{op}, nil)
	r := all[len(all)-1]
	w.checkReply(op, &r)
	return r
}

// look returns what the broker shows of a job, or nil.
func (w *world) look(seq uint64) *core.JobInfo {
	return w.ask(&core.Inspect{Ref: core.Ref{Seq: seq}, Timeline: true}).Info
}

// do runs one operation with a tag, and handles all replies for every client that listens. The immediate reply is
// passed to seen.
func (w *world) do(c *client, op core.Op, tag uint64, seen func(core.Reply)) error {
	for _, r := range w.engine.Do(c.id, []core.Op{op}, nil) {
		w.newest = max(w.newest, r.Commit)
		if r.Tag == tag {
			w.checkReply(op, &r)
		} else {
			w.checkReply(nil, &r)
		}
		if r.Tag == tag && r.Kind < core.Assigned {
			if seen != nil {
				seen(r)
			}
			continue
		}
		if err := w.handleReply(c, r); err != nil {
			return err
		}
	}
	return w.collect()
}

// collect fetches replies for clients without an operation.
func (w *world) collect() error {
	for _, c := range w.clients {
		if c.notReading {
			continue
		}
		for _, r := range w.engine.Do(c.id, nil, nil) {
			w.checkReply(nil, &r)
			if err := w.handleReply(c, r); err != nil {
				return err
			}
		}
		c.unreadSince = nothingUnread
	}
	return w.fetchEvents()
}

// commitOf returns the commit that a reply depends on.
func (w *world) commitOf(r core.Reply, stored bool) core.Commit {
	if w.mode == engine.Relaxed && stored {
		return soon
	}
	return r.Commit
}

// overdue finds waits that should have ended.
func (w *world) overdue() error {
	for _, tag := range slices.Sorted(maps.Keys(w.model.waits)) {
		wt := w.model.waits[tag]
		if wt == nil {
			continue // it ended while another wait was examined
		}
		if err := w.checkNotified(wt.seq); err != nil {
			return err
		}
		if wt.until != 0 && w.clk.monotonic.Now() > wt.until && !w.isNotReading(wt.client) {
			w.engine.Tick()
			if err := w.collect(); err != nil {
				return err
			}
			if w.model.waits[tag] != nil {
				return fmt.Errorf("wait %d for job %d should have ended at %d, now %d", tag, wt.seq, wt.until,
					w.clk.monotonic.Now())
			}
		}
	}
	return nil
}

func (w *world) isNotReading(id core.ClientID) bool {
	return slices.ContainsFunc(w.clients, func(c *client) bool { return c.id == id && c.notReading })
}

func (w *world) pass() error {
	d := time.Duration(w.rng.IntN(8000)) * time.Millisecond
	w.note("%v pass", d)
	w.clk.pass(d)
	w.engine.Tick()
	if err := w.collect(); err != nil {
		return err
	}
	return w.overslept()
}

// overslept finds a worker that has slept too long while there is work. Each woken worker that does not respond delays
// it by wakeFor.
func (w *world) overslept() error {
	for _, c := range w.clients {
		for range len(w.clients) + 1 {
			if c.tag == 0 || c.notReading || w.workFor(c) == 0 {
				break
			}
			w.clk.pass(300 * time.Millisecond)
			w.engine.Tick()
			if err := w.collect(); err != nil {
				return err
			}
		}
		if work := w.workFor(c); c.tag != 0 && !c.notReading && work > 0 {
			return fmt.Errorf("client %d sleeps beside %d jobs", c.id, work)
		}
	}
	return nil
}

// workFor returns how many jobs a sleeping worker could get.
func (w *world) workFor(c *client) (jobs int) {
	for i, able := range c.able {
		if !able {
			continue
		}
		for _, q := range w.ask(&core.InspectQueue{Queue: queueName(i)}).Queues {
			if !q.Paused && len(w.ask(&core.ListLimits{Queue: q.Name}).Limits) == 0 && !w.model.isShared(q.Name) {
				jobs += w.openIn(q.Name, q.Ready())
			}
		}
	}
	return jobs
}

// setClock sets the wall clock forward or back, by seconds or by days.
func (w *world) setClock() error {
	d := time.Duration(w.rng.IntN(120)-60) * time.Second
	if w.rng.IntN(3) == 0 {
		d *= 2000
	}
	w.note("clock set by %v", d)
	w.clk.set(d)
	w.loosenPlans()
	w.engine.Tick()
	return w.collect()
}
