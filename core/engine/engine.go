package engine

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"broker/core"
	"broker/core/clock"
	"broker/core/internal/machine"
	"broker/core/internal/record"
	"broker/core/internal/store"
	"broker/core/notify"
)

// Engine is the broker: it implements core.Broker.
type Engine struct {
	opts    Options
	store   *store.Store // nil with Durability None
	journal Journal      // nil with Durability None

	time *clock.Slewed

	mu       sync.Mutex // guards the fields below
	machine  *machine.Machine
	clients  []callbacks  // by client slot
	deadline core.Instant // when the timer goroutine wakes up
	clockSet core.Instant // by how much the clock was set since the last report

	committed atomic.Uint64
	woken     atomic.Uint64 // the newest commit whose clients have all been woken
	stopped   atomic.Bool

	sizes batchSizes
	watch commitWatch

	commitTimes commitTimes

	committing  sync.Mutex // held during a commit by the committer, Flush or Close; guards the three fields below
	sealed      machine.Sealed
	sealedWakes []func()     // of the clients that wait for the sealed batch
	sealedEntry record.Entry // the last entry

	writes    notify.Signal // something to commit
	ticks     notify.Signal // an earlier deadline
	done      chan struct{}
	running   sync.WaitGroup // the committer and the timer goroutine
	closeOnce sync.Once
	closeErr  error
	disk      diskCheck
	reclaimer reclaimer
	readers   readers
	ahead     readAhead
	damage    damageReports
}

var _ core.Broker = (*Engine)(nil)

// callbacks are those of a client; nil: there is none.
type callbacks struct{ wake, durable, close func() }

// Open opens or creates the store, recovers its contents and starts the engine.
func Open(o Options) (*Engine, error) {
	o = o.withDefaults()
	e := &Engine{
		opts: o, clients: make([]callbacks, 1), writes: notify.NewSignal(),
		ticks: notify.NewSignal(),
		done:  make(chan struct{}), time: o.time(),
	}
	if o.Durability == None {
		e.machine = machine.New(o.machine(e.time.Now()))
	} else if err := e.recover(); err != nil {
		return nil, err
	}
	e.start()
	return e, nil
}

func (e *Engine) start() {
	if !e.opts.ManualCommits && e.store != nil {
		e.running.Add(1)
		go e.commitLoop() // ends when done is closed; Close waits for it
		e.running.Add(1)
		go e.watchCommits() // also ends with done
	}
	if !e.opts.ManualTimers {
		e.running.Add(1)
		go e.timerLoop() // also ends with done
	}
}

// Open implements core.Broker.
func (e *Engine) Open(o core.ClientOptions) core.ClientID {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer crashOnPanic()
	id := e.machine.OpenClient(e.nowLocked(), o)
	slot := int(machine.Slot(id))
	for slot >= len(e.clients) {
		e.clients = append(e.clients, callbacks{})
	}
	if o.Durable == nil {
		o.Durable = o.Wake
	}
	e.clients[slot] = callbacks{o.Wake, o.Durable, o.Close}
	return id
}

// Do implements core.Broker.
func (e *Engine) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	var buf [16]func()
	for {
		from := len(into)
		var d decided
		into, d = e.decide(id, ops, into, buf[:0])
		e.notify(d.wakes, d.signals)
		for k := range d.work {
			e.complete(id, &into[from+d.work[k].Reply], &d.work[k])
		}
		if d.ops == len(ops) {
			return into
		}
		ops = ops[d.ops:]
		e.fetch(id, d.wants)
	}
}

// decided is the result of a round of decisions besides replies.
type decided struct {
	wakes   []func()
	signals signals
	work    []machine.Work // data that replies need from the store
	ops     int            // number of processed operations
	wants   machine.Wants  // data that the next operation needs, if any operation is left
}

// decide is the part of Do under the lock.
func (e *Engine) decide(id core.ClientID, ops []core.Op, into []core.Reply, wakes []func()) ([]core.Reply, decided) {
	e.mu.Lock()
	defer crashOnPanic()
	d := decided{ops: e.machine.Apply(e.nowLocked(), id, ops)}
	if d.ops < len(ops) {
		d.wants = e.machine.Wanted(id)
	}
	d.work = e.machine.Work(id)
	from := len(into)
	into = e.machine.Take(id, into)
	e.confirmLocked(id, into[from:])
	d.wakes, d.signals = e.afterLocked(wakes)
	e.mu.Unlock()
	return into, d
}

// crashOnPanic ends the process after a panic of the machine under the lock. Every function that takes the lock on a
// client's goroutine defers crashOnPanic after the unlock, so no other goroutine gets the lock before the process ends.
// An event loop recovers from panics of a session, but this panic is a broken invariant: the machine must not be used
// any more. The store has everything that was acknowledged.
func crashOnPanic() {
	r := recover()
	if r == nil {
		return
	}
	stack := debug.Stack()
	go func() { panic(fmt.Sprintf("broken invariant: %v\n\n%s", r, stack)) }() // not recovered
	select {}
}

// Close implements core.Broker.
func (e *Engine) Close(id core.ClientID) {
	var buf [16]func()
	e.mu.Lock()
	defer crashOnPanic()
	e.machine.CloseClient(e.nowLocked(), id)
	e.clients[machine.Slot(id)] = callbacks{}
	wakes, signal := e.afterLocked(buf[:0])
	e.mu.Unlock()
	e.notify(wakes, signal)
}

// Settle ends the leases of the previous leader's connections that were not resumed; see Options.Resumes.
func (e *Engine) Settle() {
	e.mu.Lock()
	defer crashOnPanic()
	e.machine.Settle(e.nowLocked())
	wakes, signals := e.afterLocked(nil)
	e.mu.Unlock()
	e.notify(wakes, signals)
}

// Committed implements core.Broker.
func (e *Engine) Committed() core.Commit { return core.Commit(e.committed.Load()) }

// Woken returns the newest commit for which the Wake of all clients has been called that wait for it.
func (e *Engine) Woken() core.Commit { return core.Commit(e.woken.Load()) }

// Stopped implements core.Broker.
func (e *Engine) Stopped() bool { return e.stopped.Load() }

// Now implements core.Broker.
func (e *Engine) Now() core.Instant { return e.time.Now() }

// signals are the effects of a round of decisions on other goroutines.
type signals struct {
	commit, tick bool
	runs         []core.ScheduleRun // for the listener
}

// afterLocked collects the work to do after the lock is released: clients to wake, goroutines to signal.
func (e *Engine) afterLocked(wakes []func()) ([]func(), signals) {
	e.machine.Touched(func(slot uint32) {
		if w := e.clients[slot].wake; w != nil {
			wakes = append(wakes, w)
		}
	})
	e.machine.Disconnected(func(slot uint32) { wakes = append(wakes, e.clients[slot].close) })
	var s signals
	if e.store != nil {
		awaited := e.machine.Awaited()
		e.sizes.awaited.Store(awaited)
		e.sizes.open.Store(int64(e.machine.Changes()))
		s.commit = awaited || e.machine.Changed()
	}
	if next := e.machine.NextDeadline(); next != 0 && (e.deadline == 0 || next < e.deadline) {
		e.deadline, s.tick = next, true
	}
	s.runs = e.machine.ScheduleRuns()
	return wakes, s
}

func (e *Engine) notify(wakes []func(), s signals) {
	wakeAll(wakes)
	if s.commit {
		e.writes.Set()
	}
	if s.tick {
		e.ticks.Set()
	}
	for _, run := range s.runs {
		e.opts.Listener.ScheduleRan(run)
	}
}

// Shutdown stops the engine: it commits the last batch and closes the store. Later calls of clients are refused.
func (e *Engine) Shutdown() error {
	e.closeOnce.Do(func() {
		close(e.done)
		e.running.Wait()
		e.readers.close()
		if e.store == nil {
			return
		}
		e.mu.Lock()
		e.machine.Stop(core.ErrShutdown)
		e.machine.Finish()
		e.mu.Unlock()
		e.commitOnce()
		e.endArchive()
		e.closeErr = e.closeStore()
	})
	return e.closeErr
}

// Abandon stops the engine of a node that no longer leads: nothing more is committed, and requests whose replies wait
// for a commit get errors. Shutdown must follow.
func (e *Engine) Abandon() { e.fail(ErrReplaced) }

// Check verifies all invariants of the index. It is for tests and the doctor: it takes linear time under the lock.
func (e *Engine) Check() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.Check()
}
