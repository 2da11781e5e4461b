package frontendtest

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"broker/core"
)

// gatedBroker commits after each operation while it is open. While it is closed, nothing is committed, and every reply
// that says something about jobs depends on the next commit, as in a leader that is not certain to lead. That commit
// wakes only the clients that depend on it: a reply that a front-end asked for as another client stays held. The
// broker can also report a failed store.
type gatedBroker struct {
	flushedBackend
	stage    *Stage
	failed   atomic.Bool  // atomic, because a front-end may read it on its own goroutines
	revealed atomic.Int64 // replies that say something about jobs, while closed

	mu     sync.Mutex // guards the fields below
	closed bool
	at     core.Commit // while closed: the newest commit
	wakes  map[core.ClientID]func()
	waits  map[core.ClientID]bool // clients whose replies depend on the next commit
}

// flushedBackend is a broker that commits when it is told to.
type flushedBackend interface {
	Backend
	Flush()
}

// openGated is Open with a gatedBroker in front of the engine. It is used on the test's goroutine only.
func openGated(t *testing.T, maker Maker) (*Stage, *gatedBroker) {
	t.Helper()
	s := Open(t, maker, NeverCommits)
	gate := &gatedBroker{
		flushedBackend: s.Broker.(flushedBackend), wakes: map[core.ClientID]func(){}, waits: map[core.ClientID]bool{},
	}
	gate.stage = NewStage(t, gate, s.Clock, maker, nil)
	return gate.stage, gate
}

func (g *gatedBroker) close() {
	g.Flush()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.at = true, g.flushedBackend.Committed()
}

// open commits, and wakes the clients that wait for it.
func (g *gatedBroker) open() {
	g.mu.Lock()
	g.closed = false
	g.mu.Unlock()
	g.Flush()
	for _, wake := range g.waiting() {
		wake()
	}
}

// waiting removes the clients that wait for the commit, and returns their wakes. The caller calls them without the
// lock, because a Wake may call Committed.
func (g *gatedBroker) waiting() (wakes []func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.waits {
		if wake := g.wakes[id]; wake != nil {
			wakes = append(wakes, wake)
		}
	}
	clear(g.waits)
	return wakes
}

// fail wakes all clients, as a failure of the store does.
func (g *gatedBroker) fail() {
	g.failed.Store(true)
	g.mu.Lock()
	wakes := slices.Collect(maps.Values(g.wakes))
	g.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// Open implements core.Broker.
func (g *gatedBroker) Open(o core.ClientOptions) core.ClientID {
	id := g.flushedBackend.Open(o)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wakes[id] = o.Wake
	return id
}

// Close implements core.Broker.
func (g *gatedBroker) Close(id core.ClientID) {
	g.mu.Lock()
	delete(g.wakes, id)
	g.mu.Unlock()
	g.flushedBackend.Close(id)
}

// Do implements core.Broker.
func (g *gatedBroker) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	from := len(into)
	into = g.flushedBackend.Do(id, ops, into)
	g.mu.Lock()
	closed := g.closed
	for i := from; closed && i < len(into); i++ {
		if r := &into[i]; reveals(r) {
			r.Commit = max(r.Commit, g.at+1)
			g.waits[id] = true
			g.revealed.Add(1)
		}
	}
	g.mu.Unlock()
	if !closed {
		g.Flush()
	}
	return into
}

// reveals reports whether a reply says something about jobs.
func reveals(r *core.Reply) bool {
	switch r.Kind { //nolint:exhaustive // the others say something
	case core.NothingReady, core.TimedOut, core.Woken, core.Reading:
		return false
	case core.Failed:
		return !errors.Is(r.Err, core.ErrStopped) && !errors.Is(r.Err, core.ErrShutdown)
	}
	return true
}

// Committed implements core.Broker.
func (g *gatedBroker) Committed() core.Commit {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return g.at
	}
	return g.flushedBackend.Committed()
}

// Stopped implements core.Broker.
func (g *gatedBroker) Stopped() bool { return g.failed.Load() || g.flushedBackend.Stopped() }
