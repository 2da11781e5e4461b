package qless

import (
	"sync"
	"sync/atomic"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/shared/resp"
)

// Options of the front-end; zero values mean the defaults.
type Options struct {
	frontends.Options

	// AllowFlush lets clients remove everything with FLUSHDB, for tests.
	AllowFlush bool
}

// Frontend makes sessions and holds their shared data.
type Frontend struct {
	broker *access.Guard
	opts   Options

	ready    atomic.Bool // Start has loaded the state
	stopping atomic.Bool // Stop was called

	mu      sync.Mutex // guards the fields below; one command runs at a time
	loading *loading   // while Start runs
	model   *model
	client  resp.SharedClient // runs all commands
	replies []core.Reply
	pending pendingEvents
	leases  sortedSet // jobs with a lease in the broker, by the time at which Tick releases it

	messages resp.Hub
	server   resp.Server
	scripts  scripts
	calls    atomic.Uint64 // of the script
}

var _ frontends.Frontend = (*Frontend)(nil)

// New makes a front-end on a broker. Until Start has returned, clients get the error LOADING for commands that need
// the state.
func New(b *access.Guard, o Options) *Frontend {
	o.Options = o.WithDefaults(resp.DefaultBytes, resp.DefaultBytes)
	f := &Frontend{broker: b, opts: o, model: newModel()}
	f.server = resp.Server{Broker: b, Messages: &f.messages, Shared: &f.client, Options: o.Options}
	f.pending = pendingEvents{ends: map[uint64]core.Event{}, queues: map[string]bool{}}
	f.scripts.known = map[string]bool{}
	return f
}

// Start reads the stored data and subscribes to events of the broker. It must be called once; clients may be
// connected. The error is errStopped after Stop, or when the broker has stopped.
func (f *Frontend) Start() error {
	f.lock()
	defer f.unlock()
	f.client.Open(f.broker)
	f.loading = &loading{ends: map[string]core.Event{}}
	f.do([]core.Op{&core.Subscribe{Kinds: eventKinds, Buffer: eventBuffer}})
	if err := f.load(); err != nil {
		return err
	}
	if err := f.attach(); err != nil {
		return err
	}
	f.loading = nil
	f.ready.Store(true)
	return nil
}

// Stop makes a Start that is running return soon. Any goroutine may call it.
func (f *Frontend) Stop() { f.stopping.Store(true) }

// lock locks the model for one command.
func (f *Frontend) lock() { f.mu.Lock() }

// unlock packs the jobs that the command has used and unlocks the model.
func (f *Frontend) unlock() {
	f.model.jobs.pack()
	f.mu.Unlock()
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "qless" }

// Bounds implements frontends.Frontend.
func (f *Frontend) Bounds() frontends.Bounds {
	return frontends.Bounds{
		MaxInput: 2 * (f.opts.MaxBodyBytes + resp.MaxCommandOverhead), MaxOutput: f.opts.MaxOutputBytes,
	}
}

// Open implements frontends.Frontend.
func (f *Frontend) Open(c frontends.Conn) frontends.Session {
	s := &session{front: f}
	s.Open(&f.server, c, s)
	s.Subscriber.MayHear = func(string) bool { return s.mayRun(redisCommands["subscribe"]) }
	return s
}

// Overflow is the reply to a connection above the connection limit.
func (f *Frontend) Overflow() []byte { return []byte(resp.Overflow) }
