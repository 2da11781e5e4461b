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
	Headers     map[string]string // sent with each request
	CA          []byte            // CA certificates for the receiver in PEM; empty: the system's
}

// Options of a Pusher.
type Options struct {
	Broker  core.Broker
	Version string // in the header User-Agent

	// Failed is called with an error when the receiver of a target cannot be reached, and with nil when it can be
	// reached again.
	Failed func(target string, err error)
}

// Status is the state of a target.
type Status struct {
	Target

	InFlight    int // requests without an answer yet
	Counts      [len(Outcomes)]uint64
	Seconds     float64 // total time of the receiver's answers
	LastError   string  // empty: none
	LastErrorAt core.Instant
	PausedUntil core.Instant // takes no job before; zero: not paused
}

// Worker is the worker name of a target's leases.
func (s *Status) Worker() string { return workerName(s.Name) }

func workerName(target string) string { return "push:" + target }

// Pusher pushes the jobs of its targets until it is closed.
type Pusher struct {
	o Options

	requests context.Context // context of all requests; ends when Close stops waiting
	abort    context.CancelFunc
	running  sync.WaitGroup // deliveries

	mu      sync.Mutex // guards the fields below
	targets []*target
	counts  map[string]*counters // by name, so that they survive a change of the target
	closed  bool
}

// New makes a Pusher without targets.
func New(o Options) *Pusher {
	p := &Pusher{o: o, counts: make(map[string]*counters)}
	p.requests, p.abort = context.WithCancel(context.Background())
	return p
}

// Set replaces the targets. Unchanged targets continue. A removed or changed target takes no more jobs, but the answers
// to its requests still count.
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

// Status returns the states of the targets, in their order.
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

// Close stops taking jobs, and waits for the answers until the context ends. Jobs without an answer keep their leases,
// because the receiver may have done them. The broker must still be open.
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
