package push

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"broker/core"
)

// Target is a receiver of jobs.
type Target struct {
	Name        string
	Queues      []string // in the order in which they are emptied
	URL         string   // https, or http on loopback
	Concurrency int      // requests at the same time
	Rate        float64  // requests a second; zero: no limit
	Timeout     time.Duration
	Secret      string            // signs the requests; empty: they are not signed
	Headers     map[string]string // of each request
	CA          []byte            // certificates in PEM that the receiver's must be signed by; empty: those of the system
}

// Options of a Pusher.
type Options struct {
	Broker  core.Broker
	Version string // in the header User-Agent

	// Failed is called when the receiver of a target cannot be reached, and with nil when it can be again.
	Failed func(target string, err error)
}

// Status is what a target does.
type Status struct {
	Target

	InFlight    int // requests that wait for their answer
	Counts      [len(Outcomes)]uint64
	Seconds     float64 // that the receiver took for its answers, in total
	LastError   string  // empty: there was none
	LastErrorAt core.Instant
	PausedUntil core.Instant // no job is taken before; zero: it is not paused
}

// Worker is the name by which a target holds its leases.
func (s *Status) Worker() string { return workerName(s.Name) }

func workerName(target string) string { return "push:" + target }

// Pusher pushes the jobs of its targets until it is closed.
type Pusher struct {
	o Options

	requests context.Context // of all deliveries; ends when Close waits no longer
	abort    context.CancelFunc
	running  sync.WaitGroup // deliveries

	mu      sync.Mutex // guards the fields below
	targets []*target
	counts  map[string]*counters // by name, so that they outlive a change of the target
	closed  bool
}

// New makes a Pusher without targets.
func New(o Options) *Pusher {
	p := &Pusher{o: o, counts: make(map[string]*counters)}
	p.requests, p.abort = context.WithCancel(context.Background())
	return p
}

// Set replaces the targets. Those that stay as they are go on; a target that is removed or changed takes no more jobs, and
// the answers to its requests still count.
func (p *Pusher) Set(targets []Target) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	old, wanted := slices.Clone(p.targets), make([]*target, len(targets))
	for i := range targets {
		at := slices.IndexFunc(old, func(t *target) bool { return reflect.DeepEqual(t.Target, targets[i]) })
		if at >= 0 {
			wanted[i] = old[at]
			old = slices.Delete(old, at, at+1)
			continue
		}
		t, err := newTarget(p, &targets[i])
		if err != nil {
			return fmt.Errorf("push target %s: %w", targets[i].Name, err)
		}
		wanted[i] = t
	}
	for _, t := range old {
		t.stop()
	}
	counts := make(map[string]*counters)
	for _, t := range wanted {
		if t.counts == nil {
			if t.counts = p.counts[t.Name]; t.counts == nil {
				t.counts = &counters{}
			}
		}
		counts[t.Name] = t.counts
	}
	p.targets, p.counts = wanted, counts
	for _, t := range wanted {
		t.start()
	}
	return nil
}

// Status is what the targets do, in their order.
func (p *Pusher) Status() []Status {
	p.mu.Lock()
	targets := slices.Clone(p.targets)
	p.mu.Unlock()
	all := make([]Status, len(targets))
	for i, t := range targets {
		all[i] = t.status()
	}
	return all
}

// Close takes no more jobs, and waits for the answers to the requests until the context ends. Jobs without an answer then keep
// their leases: the receiver may have done them. The broker must still be open.
func (p *Pusher) Close(ctx context.Context) {
	p.mu.Lock()
	targets := p.targets
	p.closed, p.targets = true, nil
	p.mu.Unlock()
	for _, t := range targets {
		t.stop()
	}
	answered := make(chan struct{})
	go func() { // ends when the deliveries have, which Close waits for
		p.running.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-ctx.Done():
	}
	p.abort()
	<-answered
	for _, t := range targets {
		t.http.CloseIdleConnections()
	}
}
