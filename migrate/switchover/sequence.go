package switchover

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// dialect is one client's connection in a protocol whose replies are in the order of the requests. Its methods run one
// at a time, except the methods that read.
type dialect interface {
	request(in *bufio.Reader) ([]byte, error)
	reply(in *bufio.Reader) ([]byte, error)
	// handle serves a request. An error ends the connection.
	handle(request []byte) error
	// greet introduces the client to the broker.
	greet(conn net.Conn, in *bufio.Reader) error
	// lost is the reply to a request whose connection to the broker was lost.
	lost() []byte
}

// sequence serves a client of such a protocol. One goroutine reads its requests, the goroutine of serve handles them,
// and each side has a goroutine that reads replies.
type sequence struct {
	s      *Switch
	d      dialect
	client net.Conn
	eof    chan struct{} // closed when the client has closed its sending side
	work   sync.WaitGroup

	// Used by the goroutine of serve only.
	server, broker *sequenceSide // broker is nil until it is needed
	last           *sequenceSide // the side that got the last request
}

// exchange is a request that was sent to a side.
type exchange struct {
	done    chan []byte               // gets the reply, or is closed; nil: the reply goes to the client
	rewrite func(reply []byte) []byte // may be nil
}

var (
	errGone = errors.New("the connection has ended")
	errLost = errors.New("the connection to the broker was lost")
)

func newSequence(s *Switch, client, server net.Conn) *sequence {
	c := &sequence{s: s, client: client, eof: make(chan struct{})}
	c.server = c.newSide(server, bufio.NewReaderSize(server, 16<<10), false)
	return c
}

// serve serves the client until it or the server ends.
func (c *sequence) serve() {
	requests := make(chan []byte)
	over := make(chan struct{})
	c.work.Go(c.server.run)
	c.work.Go(func() { // ends when the client's connection does, which is closed below
		defer close(requests)
		defer close(c.eof)
		in := bufio.NewReaderSize(c.client, 16<<10)
		for {
			p, err := c.d.request(in)
			if err != nil {
				return
			}
			select {
			case requests <- p:
			case <-over:
				return
			}
		}
	})
	for p := range requests {
		if err := c.d.handle(p); err != nil {
			_ = c.client.Close() // no more requests
			break
		}
	}
	close(over)
	if c.broker != nil {
		c.broker.drain()
		_ = c.broker.conn.Close() // its jobs return to their queues
	}
	closeWrite(c.server.conn)
	<-c.server.ended
	_ = c.client.Close() // ends the reader
	c.work.Wait()
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // fails on a closed connection
	}
}

// write sends bytes to the client.
func (c *sequence) write(b []byte) {
	if _, err := c.client.Write(b); err != nil {
		_ = c.client.Close() // the reader of requests ends
	}
}

// respond replies to the client directly.
func (c *sequence) respond(b []byte) error {
	c.drain()
	c.write(b)
	return nil
}

// drain waits until all requests have their replies.
func (c *sequence) drain() {
	if c.last != nil {
		c.last.drain()
	}
}

// pass sends a request to a side and its reply to the client. Requests to the same side need not wait for each other.
func (c *sequence) pass(s *sequenceSide, request []byte, rewrite func([]byte) []byte) error {
	if c.last != s {
		c.drain()
		c.last = s
	}
	err := s.send(request, &exchange{rewrite: rewrite})
	if s.broker && err != nil { // the client stays connected, as it does when the connection ends a moment later
		return c.respond(c.d.lost())
	}
	return err
}

// call sends a request to a side and returns its reply.
func (c *sequence) call(s *sequenceSide, request []byte) ([]byte, error) {
	c.drain()
	x := &exchange{done: make(chan []byte, 1)}
	if err := s.send(request, x); err != nil {
		return nil, err
	}
	p, ok := <-x.done
	if !ok {
		return nil, errLost
	}
	return p, nil
}

// atBroker returns the side of the broker, and connects if needed.
func (c *sequence) atBroker() (*sequenceSide, error) {
	if c.broker != nil && !c.broker.isGone() {
		return c.broker, nil
	}
	conn, in, err := c.s.broker.open(c.s.greetWithin, c.d.greet)
	if err != nil {
		return nil, err
	}
	c.drain() // wait for replies of the previous side
	c.broker = c.newSide(conn, in, true)
	c.last = nil
	c.work.Go(c.broker.run)
	return c.broker, nil
}

// sequenceSide is a connection to the server or the broker.
type sequenceSide struct {
	c      *sequence
	broker bool
	conn   net.Conn
	in     *bufio.Reader
	ended  chan struct{}

	mu      sync.Mutex // guards the fields below
	cond    sync.Cond
	pending []*exchange
	gone    bool
}

func (c *sequence) newSide(conn net.Conn, in *bufio.Reader, broker bool) *sequenceSide {
	s := &sequenceSide{c: c, broker: broker, conn: conn, in: in, ended: make(chan struct{})}
	s.cond.L = &s.mu
	return s
}

func (s *sequenceSide) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// drain waits until every request has its reply.
func (s *sequenceSide) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending) > 0 {
		s.cond.Wait()
	}
}

// send sends a request. If it returns no error, the exchange is settled later, at the latest by the end of the
// connection.
func (s *sequenceSide) send(request []byte, x *exchange) error {
	s.mu.Lock()
	for len(s.pending) >= maxSlots && !s.gone {
		s.cond.Wait()
	}
	if s.gone {
		s.mu.Unlock()
		return errGone
	}
	s.pending = append(s.pending, x)
	if s.broker && len(s.pending) == 1 {
		_ = s.conn.SetReadDeadline(time.Now().Add(s.c.s.replyWithin)) // fails on a closed connection only
	}
	s.mu.Unlock()
	if s.broker {
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.c.s.writeWithin())) // fails on a closed connection only
	}
	if _, err := s.conn.Write(request); err != nil {
		_ = s.conn.Close() // run settles the exchange
	}
	return nil
}

// run takes replies until the connection ends.
func (s *sequenceSide) run() {
	for {
		p, err := s.c.d.reply(s.in)
		if err != nil {
			break
		}
		s.mu.Lock()
		var x *exchange
		if len(s.pending) > 0 {
			x = s.pending[0]
		}
		s.mu.Unlock()
		if x == nil {
			break // an unsolicited reply
		}
		s.settle(x, p)
		s.mu.Lock()
		s.pending = s.pending[1:]
		if s.broker {
			// fails on a closed connection only
			_ = s.conn.SetReadDeadline(replyDeadline(len(s.pending), s.c.s.replyWithin))
		}
		s.cond.Broadcast()
		s.mu.Unlock()
	}
	s.end()
}

// settle gives an exchange its reply.
func (s *sequenceSide) settle(x *exchange, p []byte) {
	switch {
	case x.done != nil:
		x.done <- p
	case x.rewrite != nil:
		s.c.write(x.rewrite(p))
	default:
		s.c.write(p)
	}
}

// end settles the open exchanges. If the connection to the server ends, the client's connection ends too.
func (s *sequenceSide) end() {
	_ = s.conn.Close() // may be closed
	if !s.broker {
		_ = s.c.client.Close()
	}
	s.mu.Lock()
	s.gone = true
	pending := s.pending
	s.mu.Unlock()
	for _, x := range pending {
		switch {
		case x.done != nil:
			close(x.done)
		case s.broker:
			s.c.write(s.c.d.lost())
		}
	}
	s.mu.Lock()
	s.pending = nil
	s.cond.Broadcast()
	s.mu.Unlock()
	close(s.ended)
}
