package access

import (
	"fmt"
	"sync"
)

// Pool is a fixed number of places that clients share: listeners, operations, logins. A holder may take a place while
// it has fewer than are free. So one holder gets at most half of the pool, the next one half of the rest, and there is
// room for another. Administrators may take every free place, because they may do anything anyway. Any goroutine may
// use it.
type Pool struct {
	size int

	mu   sync.Mutex // guards the fields below
	used int
	by   map[string]int // by name of the holder
}

// Holder is who has places of a Pool: a principal, or the network of a client that has none.
type Holder struct {
	name      string
	unlimited bool // may take every free place
}

// HolderOf is the holder for a client of a principal. from is its address, with or without a port; clients without
// rights and without a name hold by address.
func HolderOf(p *Principal, from string) Holder {
	if p == nil || p.Name() == "" && !p.HasRights() {
		return Holder{name: "address " + loginNetwork(from)}
	}
	return Holder{name: "principal " + p.Name(), unlimited: p.MayAll(Admin)}
}

// NamedHolder is the holder with a name. unlimited means that it may take every free place.
func NamedHolder(name string, unlimited bool) Holder {
	return Holder{name: "principal " + name, unlimited: unlimited}
}

// NewPool makes a pool with a number of places.
func NewPool(size int) *Pool { return &Pool{size: size, by: make(map[string]int)} }

// FullError says that a holder may take no more places.
type FullError struct{ Held, Size int }

func (e *FullError) Error() string {
	return fmt.Sprintf("you have %d of %d, and the rest is in use or kept for others", e.Held, e.Size)
}

// Take takes n places for a holder, all or none. The error is a *FullError.
func (p *Pool) Take(h Holder, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.size - p.used
	if n > free || !h.unlimited && p.by[h.name]+2*n-1 > free {
		return &FullError{Held: p.by[h.name], Size: p.size}
	}
	p.addLocked(h, n)
	return nil
}

// Restore takes n places without a check, for what a holder had before a restart.
func (p *Pool) Restore(h Holder, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addLocked(h, n)
}

// Return gives n places back.
func (p *Pool) Return(h Holder, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addLocked(h, -n)
}

func (p *Pool) addLocked(h Holder, n int) {
	p.used += n
	if p.by[h.name] += n; p.by[h.name] == 0 {
		delete(p.by, h.name)
	}
}
