package switchover

import (
	"bufio"
	"net"
	"sync"
	"time"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
)

// gearman serves Gearman's clients and workers.
type gearman struct{ s *Switch }

func (g gearman) check() error {
	return g.s.broker.check(g.s.replyWithin, func(conn net.Conn, in *bufio.Reader) error {
		if _, err := conn.Write(packet.Append[string](nil, packet.RequestMagic, packet.EchoReq)); err != nil {
			return err
		}
		_, err := wire.ReadPacket(in, packet.AnswerMagic, maxHeld)
		return err
	})
}

// gearmanSide is a connection to the server or the broker.
type gearmanSide struct {
	broker  bool
	out     *outbox
	in      *bufio.Reader
	pending []*gearmanSlot // requests without a reply, in the order of sending
	held    *gearmanSlot   // the last request whose reply waits for a reply of the other side

	// For the broker only.
	functions map[string]bool // registered
	assigned  map[string]bool // jobs of this worker
	awaited   map[string]bool // jobs whose results the client waits for
}

// newGearmanSide makes the side of the broker, which must read what is sent within a time; zero: the server's.
func newGearmanSide(conn net.Conn, within time.Duration) *gearmanSide {
	s := &gearmanSide{broker: within > 0, in: bufio.NewReaderSize(conn, 16<<10)}
	s.out = newOutbox(conn, within)
	if s.broker {
		s.functions, s.assigned, s.awaited = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	}
	return s
}

// gearmanSlot is a request that gets a reply.
type gearmanSlot struct {
	typ      packet.Type
	raw      wire.Packet  // for requests that may go to both sides, and for lines of text
	entry    *entry       // of a submission
	internal bool         // the reply is not for the client
	other    *gearmanSide // the side that is asked next if this one finds nothing
	reply    wire.Packet
	after    []wire.Packet // unsolicited packets that came after the reply
}

// maxSlots limits a client's requests without a reply, and maxHeld the bytes of replies that wait for earlier ones.
const (
	maxSlots = 4096
	maxHeld  = 1 << 20
)

// gearmanConn is a client with its connections. The goroutine of join handles the client's requests. Each side has a
// goroutine that handles its replies.
type gearmanConn struct {
	s    *Switch
	out  *outbox // to the client
	work sync.WaitGroup

	mu         sync.Mutex // guards the fields below
	cond       sync.Cond  // signals changes of the fields below
	server     *gearmanSide
	broker     *gearmanSide // nil: no connection
	dialing    bool
	dialError  error
	ended      bool
	finished   bool // the client has closed its sending side
	serverGone bool
	slots      []*gearmanSlot // in the order of the client's requests
	heldBytes  int
	turn       bool // the broker is asked first for the next job

	functions map[string]wire.Packet // the worker's functions, with the packets that registered them
	settings  []wire.Packet          // options and the client's name
	asleep    bool
}

// Limits of a worker's functions at the broker. No more functions can be cut over, and none with a longer name.
const (
	maxFunctions     = maxQueues
	maxFunctionBytes = packet.HeaderBytes + maxName + 16 // of the packet, with a time-out
)

func (g gearman) join(client, server net.Conn) {
	c := &gearmanConn{
		s: g.s, out: newOutbox(client, 0), server: newGearmanSide(server, 0),
		functions: make(map[string]wire.Packet),
	}
	c.cond.L = &c.mu
	cancel := g.s.subscribe(c.changed)
	c.work.Go(c.out.run)
	c.start(c.server)
	c.requests(bufio.NewReaderSize(client, 16<<10))
	c.work.Wait()
	cancel()
	_ = client.Close() // all work has ended
}

// start starts the goroutines of a side.
func (c *gearmanConn) start(s *gearmanSide) {
	c.work.Go(s.out.run)
	c.work.Go(func() { c.replies(s) })
}

// end closes all connections, after the queued output for the client is written.
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
	// A client that does not read must not keep the connection open.
	timer := time.AfterFunc(dialWithin, c.out.close)
	c.out.finish()
	timer.Stop()
	c.out.close()
}

// requests handles the client's input.
func (c *gearmanConn) requests(in *bufio.Reader) {
	for {
		p, err := wire.ReadPacket(in, "\x00REQ", wire.MaxMessage)
		if err != nil {
			break
		}
		c.request(p)
		c.waitForRoom()
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

// waitForRoom waits until the sides have read their requests and replied to most of them.
func (c *gearmanConn) waitForRoom() {
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

// changed is called when the state of a queue has changed.
func (c *gearmanConn) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registerLocked()
}

// registerLocked registers the worker at the broker for its functions that are or were cut over.
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
		c.broker.out.put(packet.Append[string](nil, packet.RequestMagic, packet.PreSleep))
	}
}

// dialLocked starts to connect to the broker.
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
				c.redialLocked()
			}
		case c.ended || c.finished:
			_ = conn.Close() // not used
		default:
			c.connectedLocked(newGearmanSide(conn, c.s.writeWithin()))
		}
	})
}

// redialLocked connects to the broker again later.
func (c *gearmanConn) redialLocked() {
	if !c.ended && !c.finished {
		time.AfterFunc(dialAgain, c.changed)
	}
}

// connectedLocked repeats the client's settings and registrations to the broker.
func (c *gearmanConn) connectedLocked(s *gearmanSide) {
	c.broker = s
	for _, p := range c.settings {
		s.out.put(p)
		if p.Type() == packet.OptionReq {
			c.expectLocked(s, &gearmanSlot{typ: packet.OptionReq, internal: true})
		}
	}
	c.registerLocked()
	c.start(s)
}

// brokerLocked returns the connection to the broker. It waits until the connection is open or has failed.
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
