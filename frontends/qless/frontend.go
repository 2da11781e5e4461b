package qless

import (
	"sync"
	"sync/atomic"

	"broker/core"
	"broker/frontends"
	"broker/frontends/access"
	"broker/frontends/resp"
)

// Options of the front-end; zero values mean the defaults.
type Options struct {
	// Password that clients give with AUTH. Empty: none is required.
	Password string

	// MaxBodyBytes limits an argument, and so the data of a job. Default: 16 MiB.
	MaxBodyBytes int

	// MaxOutputBytes limits the unsent output of a connection. Default: 16 MiB; a single larger reply is allowed.
	MaxOutputBytes int

	// Namespace is the prefix of all queues of this front-end. Clients do not see it.
	Namespace string

	// AllowFlush lets clients remove everything with FLUSHDB, for tests.
	AllowFlush bool

	// Access finds principals by the tokens that clients give with AUTH. Nil: there are none.
	Access *access.Control

	// Audit is called after each change by an operator. Nil: nobody asks.
	Audit func(access.Change)

	// Route changes queue and type at submission. A queue that it changes is outside the namespace. Nil: no change.
	Route func(queue, typ string) (string, string)
}

// Limits.
const (
	defaultBodyBytes   = 16 << 20
	defaultOutputBytes = 16 << 20

	// pauseAt is how much a session writes before the event loop sends it.
	pauseAt = 256 << 10
)

// Frontend makes sessions, and holds what their clients share.
type Frontend struct {
	broker core.Broker
	opts   Options

	mu      sync.Mutex // guards what follows: one command at a time
	started bool
	failed  error // why nothing can be served
	model   *model
	client  core.ClientID // of the broker, in whose name commands are decided
	replies []core.Reply
	pending pendingEvents
	newest  core.Commit // what replies rest on
	leases  sortedSet   // jobs with a lease of the broker, by the time when others may take them

	messages resp.Hub
	scripts  scripts
	waiters  waiters
	commands atomic.Uint64 // calls of the script
}

var _ frontends.Frontend = (*Frontend)(nil)

// New makes a front-end on a broker. Nothing is read before the first client comes.
func New(b core.Broker, o Options) *Frontend {
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = defaultBodyBytes
	}
	if o.MaxOutputBytes <= 0 {
		o.MaxOutputBytes = defaultOutputBytes
	}
	f := &Frontend{broker: b, opts: o, model: newModel()}
	f.pending = pendingEvents{ends: map[uint64]core.Event{}, queues: map[string]bool{}}
	f.scripts.known = map[string]bool{}
	f.waiters.sessions = map[*session]core.Commit{}
	return f
}

// Start reads what is stored and begins to listen to the broker. Later calls do nothing.
func (f *Frontend) Start() error {
	f.lock()
	defer f.unlock()
	if f.started {
		return f.failed
	}
	f.started = true
	own := core.ClientOptions{Protocol: core.Qless, Unlisted: true, Wake: f.waiters.wake(f.broker)}
	f.client = access.Admit(f.broker, own, access.Credentials{Login: access.Everyone}) // a command is checked before it runs
	f.do([]core.Op{&core.Subscribe{Kinds: eventKinds, Buffer: eventBuffer}})
	if f.failed = f.load(); f.failed == nil {
		f.attach()
	}
	return f.failed
}

// lock begins the work of one command on the model.
func (f *Frontend) lock() { f.mu.Lock() }

// unlock ends it: jobs that the command has looked at are packed again.
func (f *Frontend) unlock() {
	f.model.jobs.pack()
	f.mu.Unlock()
}

// Name implements frontends.Frontend.
func (f *Frontend) Name() string { return "qless" }

// Limits implements frontends.Frontend.
func (f *Frontend) Limits() frontends.Limits {
	return frontends.Limits{MaxInput: 2 * (f.opts.MaxBodyBytes + resp.MaxCommandOverhead), MaxOutput: f.opts.MaxOutputBytes}
}

// Open implements frontends.Frontend.
func (f *Frontend) Open(c frontends.Conn) frontends.Session {
	s := &session{f: f, conn: c, authorized: f.opts.Password == ""}
	s.subscriber.Wake = c.Wake
	s.client = frontends.OpenClient(f.broker, core.Qless, c, nil)
	return s
}

// Overflow is the refusal of a connection above the connection limit.
func (f *Frontend) Overflow() []byte { return []byte("-ERR max number of clients reached\r\n") }

// waiters are the sessions with replies that wait for a commit.
type waiters struct {
	mu       sync.Mutex // guards sessions
	sessions map[*session]core.Commit
}

// add has a session woken once a commit is durable.
func (w *waiters) add(s *session, commit core.Commit) {
	w.mu.Lock()
	w.sessions[s] = max(w.sessions[s], commit)
	w.mu.Unlock()
}

func (w *waiters) remove(s *session) {
	w.mu.Lock()
	delete(w.sessions, s)
	w.mu.Unlock()
}

// wake is what the broker calls when a commit is durable or an event waits.
func (w *waiters) wake(b core.Broker) func() {
	return func() {
		committed, stopped := b.Committed(), b.Stopped()
		w.mu.Lock()
		defer w.mu.Unlock()
		for s, commit := range w.sessions {
			if commit <= committed || stopped {
				delete(w.sessions, s)
				s.conn.Wake()
			}
		}
	}
}
