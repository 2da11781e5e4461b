package store

import "sync"

// useGuard counts the calls in progress and can be closed. Unlike with a RWMutex, nested enters fail once close has
// begun, so callbacks that use the store get ErrClosed instead of deadlocking.
type useGuard struct {
	mu     sync.Mutex
	calls  int
	closed bool
	idle   chan struct{} // closed when the last call leaves after close
}

func (g *useGuard) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.calls++
	return true
}

func (g *useGuard) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	if g.closed && g.calls == 0 {
		close(g.idle)
	}
}

// close refuses further calls and waits for those in progress. It returns true for the first caller only.
func (g *useGuard) close() bool {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return false
	}
	g.closed = true
	if g.calls == 0 {
		g.mu.Unlock()
		return true
	}
	g.idle = make(chan struct{})
	g.mu.Unlock()
	<-g.idle
	return true
}
