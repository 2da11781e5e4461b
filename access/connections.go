package access

import (
	"cmp"
	"container/heap"
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
	last   uint64            // counts guests
	guests map[string]*group // by address
	most   mostGuests        // the same groups
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
	group    *group        // of its address; nil: it is not a guest
	guest    *list.Element // its place in the group
	number   uint64        // of the guest; the oldest has the lowest
	holder   Holder
	admitted bool
	left     bool
	idle     *time.Timer // ends a guest; nil: it is busy
}

// NewConnections makes Connections.
func NewConnections(o ConnectionOptions) *Connections {
	return &Connections{options: o, pool: NewPool(o.Size), guests: make(map[string]*group)}
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
	if len(s.most.groups) == 0 {
		return nil
	}
	first := s.most.groups[0]
	if own := s.guests[newcomer.address.name]; !s.options.Renew && own != nil && own.Len() >= first.Len() {
		return nil
	}
	return first.oldest()
}

// Guest makes a connection a guest, unless it is admitted. close ends it; a further call replaces close.
func (c *Connection) Guest(close func()) {
	s := c.all
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.left || c.admitted {
		return
	}
	if c.close = close; c.group != nil || s.options.Size == 0 {
		return
	}
	s.last++
	c.number = s.last
	if c.group = s.guests[c.address.name]; c.group != nil {
		c.guest = c.group.PushBack(c)
		heap.Fix(&s.most, c.group.at)
		return
	}
	c.group = &group{List: list.New()}
	s.guests[c.address.name] = c.group
	c.guest = c.group.PushBack(c)
	heap.Push(&s.most, c.group)
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
	if c.group != nil {
		c.all.last++
		c.number = c.all.last
		c.group.MoveToBack(c.guest)
		heap.Fix(&c.all.most, c.group.at)
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
	if c.group == nil {
		return
	}
	of := c.group
	of.Remove(c.guest)
	if c.group, c.guest = nil, nil; of.Len() > 0 {
		heap.Fix(&s.most, of.at)
		return
	}
	heap.Remove(&s.most, of.at)
	delete(s.guests, c.address.name)
}

// Open is the number of connections.
func (s *Connections) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// group is the guests of an address, the oldest first. It is not empty.
type group struct {
	*list.List
	at int // its index in mostGuests
}

func (g *group) oldest() *Connection { return g.Front().Value.(*Connection) }

// mostGuests is a heap of the addresses with guests: the one with the most guests first, and of equal ones the one with
// the oldest guest. It implements heap.Interface.
type mostGuests struct {
	groups   []*group
	compared int // counts calls of Less
}

func (m *mostGuests) Len() int { return len(m.groups) }

func (m *mostGuests) Less(i, j int) bool {
	m.compared++
	a, b := m.groups[i], m.groups[j]
	return cmp.Or(cmp.Compare(b.Len(), a.Len()), cmp.Compare(a.oldest().number, b.oldest().number)) < 0
}

func (m *mostGuests) Swap(i, j int) {
	m.groups[i], m.groups[j] = m.groups[j], m.groups[i]
	m.groups[i].at, m.groups[j].at = i, j
}

// Push implements heap.Interface.
func (m *mostGuests) Push(x any) {
	g := x.(*group)
	g.at = len(m.groups)
	m.groups = append(m.groups, g)
}

// Pop implements heap.Interface.
func (m *mostGuests) Pop() any {
	last := len(m.groups) - 1
	g := m.groups[last]
	m.groups[last] = nil
	m.groups = m.groups[:last]
	return g
}
