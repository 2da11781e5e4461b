package sqs

import (
	"context"
	"sync"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// Options of the front-end.
type Options struct {
	frontends.Options

	// Panicked is called with the value and stack of a panic in a request. The client does not see them. May be nil.
	Panicked func(value any, stack []byte)

	Account, Region string // parts of URLs and ARNs
	// start of queue URLs; empty: from the client's Host header
	URL string
	// received messages of a queue that are not deleted; 0: no limit
	MaxInFlight int
}

// Frontend serves requests. Create it with New, Start it once, and Close it.
type Frontend struct {
	broker core.Broker // without the guard: each action checks the rights of its caller
	guard  *access.Guard
	opts   Options
	meter  meter
	stacks stacks

	mu     sync.RWMutex // guards the fields below
	loaded bool
	queues map[string]*queue // at a node that follows: those that were used
	tasks  []*moveTask       // oldest first
	drops  uint64            // at a node that follows: how often the leader has told a change

	running *access.Pool // places of running tasks

	changes  sync.Mutex // held while queues are changed, before mu
	attempts attempts
	nodes    nodes

	ctx  context.Context // of the goroutines that move messages
	stop context.CancelFunc
	done sync.WaitGroup
}

// New makes a front-end on the guarded broker of its protocol.
func New(b *access.Guard, o Options) *Frontend {
	if o.Route == nil {
		o.Route = func(queue, typ string) (string, string) { return queue, typ }
	}
	if o.Audit == nil {
		o.Audit = func(access.Change) {}
	}
	if o.Panicked == nil {
		o.Panicked = func(any, []byte) {}
	}
	o.Options = o.WithDefaults(maxBatchBytes, 0)
	f := &Frontend{
		broker: b.Unguarded(), guard: b, opts: o, meter: newMeter(), queues: make(map[string]*queue),
		running: access.NewPool(maxRunningTasks),
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.stacks = newStacks(f.ctx.Done())
	return f
}

// Start reads the stored queues, if Load has not, and continues move tasks, which the leader does for all nodes.
func (f *Frontend) Start() error {
	if f.follows() {
		f.done.Go(func() { f.reportCounts(f.ctx) })
		return nil
	}
	if err := f.Load(); err != nil {
		return err
	}
	for _, t := range f.tasks {
		if t.running() {
			t.holder = access.NamedHolder(t.Who, false)
			f.running.Restore(t.holder, 1)
			f.runTask(t)
		}
	}
	return nil
}

// Close ends background tasks and waiting requests.
func (f *Frontend) Close() {
	f.stop()
	f.done.Wait()
}

// caller is the client that makes a request.
type caller struct {
	principal *access.Principal
	address   string
	identity  string // subject of the certificate
	internal  bool   // the front-end itself
}

// name is the caller's name in lists.
func (c *caller) name() string {
	if c.principal == nil {
		return ""
	}
	return c.principal.Name()
}

// coreName is the broker's name of a queue.
func (f *Frontend) coreName(name string) string { return f.opts.Namespace + name }

// may refuses a caller without a role for a queue.
func (f *Frontend) may(c caller, role access.Role, name string) error {
	if c.principal.May(role, f.coreName(name)) {
		return nil
	}
	return f.forbid(name)
}

// forbid counts a refusal.
func (f *Frontend) forbid(name string) error {
	f.guard.CountRefusal()
	return refuse(accessDenied, "Access to the resource %s is denied.", name)
}
