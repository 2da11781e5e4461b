package access

import (
	"container/list"
	"sync"
	"time"
)

// Connections divides a limited number of connections among clients. A connection first only counts. It becomes a
// guest of its address if its client has not shown yet who it is, and is admitted once that is known. Admitted
// connections are places of a Pool. Guests use what is left: when all is used, a newcomer displaces the oldest guest
// of the address with the most guests. Any goroutine may use it.
type Connections struct {
	options ConnectionOptions
	pool    *Pool // of admitted connections

	mu     sync.Mutex // guards the fields below, and those of all connections
	open   int
	last   uint64                // counts guests
	guests map[string]*list.List // by address, oldest first
}

// ConnectionOptions are the options of NewConnections.
type ConnectionOptions struct {
	Size  int // places; 0: no limit
	Extra int // connections beyond, for clients that have not shown who they are

	// Renew lets a newcomer displace the oldest guest of its own address too. Otherwise it displaces only a guest of
	// an address that has more guests than its own.
	Renew bool
}

// Connection is one connection of Connections.
type Connection struct {
	all      *Connections
	address  Holder
	close    func()
	guest    *list.Element // its place among the guests of its address; nil: it is none
	number   uint64        // of the guest; the oldest has the lowest
	holder   Holder
	admitted bool
	left     bool
	idle     *time.Timer // ends a guest; nil: it is busy
}

// NewConnections makes Connections.
func NewConnections(o ConnectionOptions) *Connections {
	return &Connections{options: o, pool: NewPool(o.Size), guests: make(map[string]*list.List)}
}

// Enter counts a new connection of an address, with or without a port. It may displace a guest, whose close is called
// before Enter returns. It returns nil if there is no room.
func (s *Connections) Enter(from string) *Connection {
	c := &Connection{all: s, address: AddressHolder(from)}
	displaced, room := s.makeRoom(c)
	if displaced != nil {
		displaced.close()
	}
	if !room {
		return nil
	}
	return c
}

// makeRoom counts a newcomer if there is room, maybe that of a guest, which it returns.
func (s *Connections) makeRoom(c *Connection) (displaced *Connection, room bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.Size > 0 && s.open >= s.options.Size+s.options.Extra {
		if displaced = s.oldestOfMost(c); displaced == nil {
			return nil, false
		}
		s.leave(displaced)
	}
	s.open++
	return displaced, true
}

// oldestOfMost is the guest that a newcomer displaces; nil: none.
func (s *Connections) oldestOfMost(newcomer *Connection) *Connection {
	own, most := 0, 0
	var of *list.List
	for address, guests := range s.guests {
		n := guests.Len()
		if address == newcomer.address.name {
			own = n
		}
		if n > most || n == most && oldest(guests).number < oldest(of).number {
			most, of = n, guests
		}
	}
	if of == nil || !s.options.Renew && most <= own {
		return nil
	}
	return oldest(of)
}

func oldest(guests *list.List) *Connection { return guests.Front().Value.(*Connection) }

// Guest makes a connection a guest, unless it is admitted. close ends it; a further call replaces close.
func (c *Connection) Guest(close func()) {
	s := c.all
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.left || c.admitted {
		return
	}
	if c.close = close; c.guest != nil || s.options.Size == 0 {
		return
	}
	guests := s.guests[c.address.name]
	if guests == nil {
		guests = list.New()
		s.guests[c.address.name] = guests
	}
	s.last++
	c.number, c.guest = s.last, guests.PushBack(c)
}

// Admit gives a connection to its holder. The error is a *FullError; then the connection stays what it was.
func (c *Connection) Admit(h Holder) error {
	s := c.all
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.left || c.admitted && c.holder == h {
		return nil
	}
	if s.options.Size > 0 {
		if err := s.pool.Take(h, 1); err != nil {
			return err
		}
	}
	s.forget(c)
	c.holder, c.admitted = h, true
	return nil
}

// Idle says that a request has ended. It ends a guest after a time in which neither Busy nor Admit is called.
func (c *Connection) Idle(most time.Duration) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.renew()
	if !c.left && !c.admitted && c.close != nil && c.idle == nil {
		c.idle = time.AfterFunc(most, c.close)
	}
}

// Busy says that a connection has a request. Both make a guest the newest one of its address.
func (c *Connection) Busy() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.renew()
	c.stopIdle()
}

// renew makes a guest the newest of its address.
func (c *Connection) renew() {
	if c.guest != nil {
		c.all.last++
		c.number = c.all.last
		c.all.guests[c.address.name].MoveToBack(c.guest)
	}
}

func (c *Connection) stopIdle() {
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
}

// Leave ends a connection. Further calls do nothing.
func (c *Connection) Leave() {
	s := c.all
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(c)
}

func (s *Connections) leave(c *Connection) {
	if !c.left {
		s.forget(c)
		c.left = true
		s.open--
	}
}

// forget takes a connection from its holder, or from the guests.
func (s *Connections) forget(c *Connection) {
	c.stopIdle()
	if c.admitted {
		if s.options.Size > 0 {
			s.pool.Return(c.holder, 1)
		}
		c.admitted = false
	}
	if c.guest == nil {
		return
	}
	guests := s.guests[c.address.name]
	guests.Remove(c.guest)
	if c.guest = nil; guests.Len() == 0 {
		delete(s.guests, c.address.name)
	}
}

// Open is the number of connections.
func (s *Connections) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
