package access

import (
	"fmt"
	"sync"
)

// Pool is a fixed number of places that clients share: listeners, operations, logins. A holder may take a place while
// it has fewer than are free. So one holder gets at most half of the pool, the next one half of the rest, and there is
// room for another. An address whose clients need not say who they are leaves an eighth of what is free, since it may
// be that of all clients. Administrators may take every free place, because they may do anything anyway. Any goroutine
// may use it.
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
	open      bool // may hold addressTimes as many places as are free
}

// addressTimes is how many times the free places an open address may hold.
const addressTimes = 7

// ClientHolder is HolderOf for a client on a socket. Where nobody has to say who he is, clients hold by address.
func ClientHolder(p *Principal, from string) Holder {
	if p == Everyone {
		h := AddressHolder(from)
		h.open = true
		return h
	}
	return HolderOf(p, from)
}

// AddressHolder is the holder for a client that has not shown who it is.
func AddressHolder(from string) Holder { return Holder{name: "address " + loginNetwork(from)} }

// HolderOf is the holder for a client of a principal. from is its address, with or without a port; clients without
// rights and without a name hold by address.
func HolderOf(p *Principal, from string) Holder {
	if p == nil || p.Name() == "" && !p.HasRights() {
		return AddressHolder(from)
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
	free, times := p.size-p.used, 1
	if h.open {
		times = addressTimes
	}
	if n > free || !h.unlimited && p.by[h.name]+n > times*(free-n+1) {
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
