package switchover

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// gearman serves Gearman's clients and workers.
type gearman struct{ s *Switch }

func (g gearman) check() error {
	conn, err := g.s.broker.dial()
	if err == nil {
		_ = conn.Close() // nothing was said
	}
	return err
}

// gearmanSide is a connection to the server or the broker.
type gearmanSide struct {
	broker  bool
	out     *outbox
	in      *bufio.Reader
	pending []*gearmanSlot // requests without their reply, in the order in which they were sent
	held    *gearmanSlot   // the last one whose reply waits behind the other side's

	// Of the broker only.
	functions map[string]bool // registered
	assigned  map[string]bool // jobs that this worker has
	awaited   map[string]bool // jobs whose results the client waits for
}

func newGearmanSide(conn net.Conn, broker bool) *gearmanSide {
	s := &gearmanSide{broker: broker, in: bufio.NewReaderSize(conn, 16<<10)}
	s.out = newOutbox(conn, 0)
	if broker {
		s.out.within = writeWithin
		s.functions, s.assigned, s.awaited = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	}
	return s
}

// gearmanSlot is a request that gets a reply.
type gearmanSlot struct {
	typ      gearmanType
	raw      gearmanPacket // of a request that may go to both sides, and of a line of text
	entry    *entry        // of a submission
	internal bool          // the reply is not for the client
	other    *gearmanSide  // where the request goes if this side has nothing
	reply    gearmanPacket
	after    []gearmanPacket // unasked packets that came behind the reply
}

// maxSlots bounds the requests of a client that have no reply yet, and maxHeld the bytes of replies that wait behind others.
const (
	maxSlots = 4096
	maxHeld  = 1 << 20
)

// gearmanConn is a client with its connections. The client's requests are handled by the goroutine of join; each side has a goroutine
// that handles its replies.
type gearmanConn struct {
	s    *Switch
	out  *outbox // to the client
	work sync.WaitGroup

	mu         sync.Mutex // guards what follows
	cond       sync.Cond  // some of it has changed
	server     *gearmanSide
	broker     *gearmanSide // nil: there is no connection
	dialing    bool
	dialError  error
	ended      bool
	finished   bool // the client sends no more
	serverGone bool
	slots      []*gearmanSlot // in the order in which the client asked
	heldBytes  int
	turn       bool // the broker is asked first for the next job

	functions map[string]gearmanPacket // what the worker can do, with the packet that says so
	settings  []gearmanPacket          // options and the worker's name
	asleep    bool
}

// maxFunctions bounds what a worker can do at the broker: no more functions are cut over than that, and none with a longer name.
const (
	maxFunctions     = maxQueues
	maxFunctionBytes = gearmanHeader + maxName + 16 // of the packet, with a time-out
)

func (g gearman) join(client, server net.Conn) {
	c := &gearmanConn{s: g.s, out: newOutbox(client, 0), server: newGearmanSide(server, false), functions: make(map[string]gearmanPacket)}
	c.cond.L = &c.mu
	cancel := g.s.subscribe(c.changed)
	c.work.Go(c.out.run)
	c.start(c.server)
	c.requests(bufio.NewReaderSize(client, 16<<10))
	c.work.Wait()
	cancel()
	_ = client.Close() // nobody reads it
}

// start lets the goroutines of a side begin.
func (c *gearmanConn) start(s *gearmanSide) {
	c.work.Go(s.out.run)
	c.work.Go(func() { c.replies(s) })
}

// end closes all connections. What was put for the client is written first.
func (c *gearmanConn) end() {
	c.mu.Lock()
	c.ended = true
	server, broker := c.server, c.broker
	c.cond.Broadcast()
	c.mu.Unlock()
	server.out.close()
	if broker != nil {
		broker.out.close()
	}
	// A client that does not read does not keep the connection.
	timer := time.AfterFunc(dialWithin, c.out.close)
	c.out.finish()
	timer.Stop()
	c.out.close()
}

// requests handles what the client sends.
func (c *gearmanConn) requests(in *bufio.Reader) {
	for {
		p, err := readGearman(in, "\x00REQ")
		if err != nil {
			break
		}
		c.request(p)
		c.room()
	}
	c.mu.Lock()
	c.finished = true
	server, broker := c.server, c.broker
	c.mu.Unlock()
	server.out.finish()
	if broker != nil {
		broker.out.finish()
	}
}

// room waits until the sides have taken what they were sent, and replied to most of it.
func (c *gearmanConn) room() {
	c.mu.Lock()
	for len(c.slots) >= maxSlots && !c.ended {
		c.cond.Wait()
	}
	server, broker := c.server, c.broker
	c.mu.Unlock()
	server.out.wait()
	if broker != nil {
		broker.out.wait()
	}
}

// changed is called when the state of some queue has.
func (c *gearmanConn) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registerLocked()
}

// registerLocked lets a worker get the broker's jobs of its functions that are or were cut over.
func (c *gearmanConn) registerLocked() {
	more := false
	for name, p := range c.functions {
		if !c.s.both(name) || c.broker != nil && c.broker.functions[name] {
			continue
		}
		if c.broker == nil {
			c.dialLocked()
			return
		}
		c.broker.functions[name], more = true, true
		c.broker.out.put(p)
	}
	if more && c.asleep {
		c.broker.out.put(requestPacket(gearmanPreSleep))
	}
}

// dialLocked begins to connect to the broker.
func (c *gearmanConn) dialLocked() {
	if c.dialing || c.ended || c.finished {
		return
	}
	c.dialing = true
	c.work.Go(func() {
		conn, err := c.s.broker.dial()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dialing, c.dialError = false, err
		c.cond.Broadcast()
		switch {
		case err != nil:
			if len(c.functions) > 0 {
				c.againLocked()
			}
		case c.ended || c.finished:
			_ = conn.Close() // nobody uses it
		default:
			c.connectedLocked(newGearmanSide(conn, true))
		}
	})
}

// againLocked lets a worker connect to the broker later.
func (c *gearmanConn) againLocked() {
	if !c.ended && !c.finished {
		time.AfterFunc(dialAgain, c.changed)
	}
}

// connectedLocked tells the broker what the client has told the server.
func (c *gearmanConn) connectedLocked(s *gearmanSide) {
	c.broker = s
	for _, p := range c.settings {
		s.out.put(p)
		if p.typ() == gearmanOption {
			c.expectLocked(s, &gearmanSlot{typ: gearmanOption, internal: true})
		}
	}
	c.registerLocked()
	c.start(s)
}

// brokerLocked is the connection to the broker. It waits until there is one, or connecting has failed.
func (c *gearmanConn) brokerLocked() (*gearmanSide, error) {
	if c.broker == nil {
		c.dialLocked()
	}
	for c.dialing && !c.ended {
		c.cond.Wait()
	}
	if c.broker == nil && c.dialError == nil {
		return nil, net.ErrClosed
	}
	return c.broker, c.dialError
}

// requestPacket is a request without arguments.
func requestPacket(typ gearmanType) gearmanPacket {
	p := newGearmanPacket(typ)
	copy(p, "\x00REQ")
	return p
}
