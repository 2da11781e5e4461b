package store

import "sync"

// gate counts who is inside and can be shut. Unlike a RWMutex it lets in, again, nobody who is inside already once it is
// being shut, so that a callback which uses the store during Close gets an error instead of a deadlock.
type gate struct {
	mu     sync.Mutex
	inside int
	closed bool
	idle   chan struct{} // closed when the last one leaves a shut gate
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.closed && g.inside == 0 {
		close(g.idle)
	}
}

// shut lets nobody in any more and waits for those inside. Only the first call does, and returns true.
func (g *gate) shut() bool {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return false
	}
	g.closed = true
	if g.inside == 0 {
		g.mu.Unlock()
		return true
	}
	g.idle = make(chan struct{})
	g.mu.Unlock()
	<-g.idle
	return true
}
