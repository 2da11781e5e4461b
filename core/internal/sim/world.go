package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
)

// world is one simulated life: a disk, an engine on it, clients, and the model.
type world struct {
	rng     *rand.Rand
	clk     *coretest.Clock
	disk    *storetest.Disk
	engine  *engine.Engine
	model   *model
	clients []core.ClientID
	kinds   map[core.ClientID]core.Protocol
	leaseBy map[core.ClientID]core.Holder
	log     []string
	nextID  int
	crashes int
	mode    engine.Durability
}

func newWorld(seed uint64) (*world, error) {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 7)), clk: coretest.NewClock(), disk: storetest.NewDisk(), model: newModel(),
	}
	return w, w.open()
}

func (w *world) open() error {
	e, err := engine.Open(engine.Options{
		Dir: "data", FS: w.disk.FS(), Clock: w.clk, Seed: 1, ManualTimers: true, ManualCommits: true,
		Durability: w.mode, CacheBytes: 20_000, // small, so that payloads are read back often
	})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	w.engine = e
	w.clients, w.kinds, w.leaseBy = nil, map[core.ClientID]core.Protocol{}, map[core.ClientID]core.Holder{}
	for range 6 {
		w.connect()
	}
	return e.Check()
}

func (w *world) connect() {
	p := []core.Protocol{core.Workq, core.Gearman, core.Faktory}[w.rng.IntN(3)]
	c := w.engine.Open(core.ClientOptions{Protocol: p, Wake: func() {}})
	w.clients, w.kinds[c] = append(w.clients, c), p
	if p == core.Gearman {
		for i := range 3 {
			w.engine.Do(c, []core.Op{&core.Able{Queue: queueName(i)}}, nil)
		}
	}
}

func queueName(i int) string { return "queue-" + string(rune('a'+i)) }

// step does one random thing and checks everything.
func (w *world) step() error {
	var err error
	switch n := w.rng.IntN(100); {
	case n < 30:
		err = w.submit()
	case n < 50:
		err = w.lease()
	case n < 66:
		err = w.finish()
	case n < 72:
		err = w.order()
	case n < 82:
		w.note("clock")
		w.clk.Advance(time.Duration(w.rng.IntN(8000)) * time.Millisecond)
		w.engine.Tick()
		err = w.collect()
	case n < 86:
		err = w.reconnect()
	case n < 97:
		w.note("flush")
		w.engine.Flush()
	case n < 99:
		err = w.crash()
	default:
		err = w.pause()
	}
	if err != nil {
		return err
	}
	return w.engine.Check()
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
	if len(w.log) > 60 {
		w.log = w.log[1:]
	}
}

func (w *world) history() string { return strings.Join(w.log, "\n") }

func (w *world) anyClient() core.ClientID { return w.clients[w.rng.IntN(len(w.clients))] }

// do runs one operation and takes in all that comes back, for every client.
func (w *world) do(c core.ClientID, op core.Op, seen func(core.Reply)) error {
	for _, r := range w.engine.Do(c, []core.Op{op}, nil) {
		if r.Kind == core.Assigned {
			if err := w.model.assigned(w.clk.Now(), c, r, w.leaseBy[c] == core.HeldByConn); err != nil {
				return err
			}
			continue
		}
		if seen != nil {
			seen(r)
		}
	}
	return w.collect()
}

// collect fetches what was decided for clients that did not ask just now.
func (w *world) collect() error {
	for _, c := range w.clients {
		for _, r := range w.engine.Do(c, nil, nil) {
			if r.Kind != core.Assigned {
				continue
			}
			if err := w.model.assigned(w.clk.Now(), c, r, w.leaseBy[c] == core.HeldByConn); err != nil {
				return err
			}
		}
	}
	return nil
}

// crash takes the power away, sometimes in the middle of a commit, and compares what came back with the model.
func (w *world) crash() error {
	w.crashes++
	committed := w.engine.Committed()
	var after *storetest.Disk
	keep := w.rng.IntN(101)
	if at := w.rng.IntN(12); at > 0 {
		ops := 0
		w.disk.Before(func(write bool) error {
			if ops++; write && ops == at && after == nil {
				after = w.disk.Crash(w.rng, keep)
			}
			return nil
		})
		w.engine.Flush()
		w.disk.Before(nil)
	}
	if after == nil {
		committed = w.engine.Committed()
		after = w.disk.Crash(w.rng, keep)
	}
	w.note("crash at commit %d, %d%% of the rest kept", committed, keep)
	_ = w.engine.Shutdown() // the old life ends on its own disk; nothing of it counts
	w.disk = after
	if err := w.open(); err != nil {
		return err
	}
	if err := w.model.afterCrash(w.clk.Now(), committed, w.look); err != nil {
		return err
	}
	return w.sameAgain()
}

// sameAgain restarts without a crash: what is there must not change by that.
func (w *world) sameAgain() error {
	before := w.states()
	if err := w.engine.Shutdown(); err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	if err := w.open(); err != nil {
		return err
	}
	if after := w.states(); after != before {
		return fmt.Errorf("recovery is not idempotent:\n%s\nthen\n%s", before, after)
	}
	return nil
}

func (w *world) states() string {
	var b strings.Builder
	for _, seq := range w.model.seqs {
		if i := w.look(seq); i != nil {
			fmt.Fprintf(&b, "%d:%v/%d/%d ", seq, i.State, i.Attempts, i.Fails)
		}
	}
	return b.String()
}

func (w *world) look(seq uint64) *core.JobInfo {
	r := w.engine.Do(w.clients[0], []core.Op{&core.Inspect{Ref: core.Ref{Seq: seq}}}, nil)
	for _, x := range r {
		if x.Kind == core.Inspected {
			return x.Info
		}
	}
	return nil
}
