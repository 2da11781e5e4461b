package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"broker/core"
	"broker/core/notify"
)

// Server serves clients of other nodes on the leader: each is a client of its broker.
type Server struct {
	broker core.Broker
	note   []byte
	owner  Owner

	mu      sync.Mutex // guards the fields below
	links   map[*served]struct{}
	closed  bool
	clients atomic.Int64
	running sync.WaitGroup // Serve
}

// NewServer makes a server. note is for the nodes that connect, at most 64 KiB.
func NewServer(b core.Broker, note []byte, o Owner) *Server {
	return &Server{broker: b, note: note, owner: o, links: make(map[*served]struct{})}
}

// Counts are the links to other nodes, their clients, and the bytes that wait to be written to them.
func (s *Server) Counts() (links, clients int, buffered int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.links {
		buffered += l.buffered.Load()
	}
	return len(s.links), int(s.clients.Load()), buffered
}

// served is a link to a node.
type served struct {
	*link
	server *Server
	node   *Node

	dirtyMu sync.Mutex // guards dirty
	dirty   []*guest   // whose Wake was called since they were looked at
	wakes   notify.Signal

	turn    sync.Mutex // held by the goroutine that uses clients; guards the fields below
	guests  map[uint64]*guest
	ops     []core.Op
	replies []core.Reply
	w       coder
	leaving bool // no operation is taken any more

	reading atomic.Bool // read will look after those that are woken
}

// guest is a client of the node. The turn of its link guards it.
type guest struct {
	number uint64 // at its node
	id     core.ClientID
	dirty  atomic.Bool

	held    core.Commit // the newest commit that replies wait for at the node
	pushed  []jobLease  // jobs that were pushed and that the client has not fetched
	unread  bool        // replies were pushed that the client has not fetched
	waiting bool        // more replies may wait
}

// jobLease is a lease of a job.
type jobLease struct {
	seq   uint64
	epoch uint32
}

// Serve speaks to a node over a connection until either side ends it. It takes ownership of the connection.
func (s *Server) Serve(conn net.Conn) error {
	_, err := readHello(conn)
	if answer := writeHello(conn, s.note); err == nil {
		err = answer
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	l := &served{server: s, guests: make(map[uint64]*guest), wakes: notify.NewSignal()}
	l.node = &Node{l}
	const head = 10 // msgCommit with its length
	l.link = newLink(conn, head, func(b []byte) {
		b[0], b[1] = head-1, msgCommit
		binary.BigEndian.PutUint64(b[2:], uint64(s.broker.Committed()))
	})
	if err != nil || !s.add(l) {
		_ = conn.Close() // nothing was promised
		return err
	}
	defer s.remove(l)
	var parts sync.WaitGroup
	parts.Go(l.write) // these end with the link
	parts.Go(func() { l.beat(func() {}) })
	parts.Go(l.push)
	l.read()
	parts.Wait()
	l.closeGuests()
	s.owner.Left(l.node)
	return l.reason()
}

func (s *Server) add(l *served) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.links[l] = struct{}{}
	s.running.Add(1)
	return true
}

func (s *Server) remove(l *served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, l)
	s.running.Done()
}

// Close ends all links. What clients of other nodes were told depends on commits: it is told them first, until ctx is
// done. It returns when no client is left.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	var all []*served
	for l := range s.links {
		all = append(all, l)
	}
	s.mu.Unlock()
	var each sync.WaitGroup
	for _, l := range all {
		each.Go(func() { l.bye(ctx) })
	}
	each.Wait()
	s.running.Wait()
}

// bye ends a link in good order: no operation is taken any more, and what was answered is committed and told. The node
// closes the connection then: if this one did, what it has not read could destroy what it has sent.
func (l *served) bye(ctx context.Context) {
	defer l.end(errClosed)
	if ctx.Err() != nil {
		return
	}
	var last core.Commit
	l.inTurn(func() {
		l.leaving = true
		for _, g := range l.guests {
			last = max(last, g.held)
		}
	})
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for l.server.broker.Committed() < last && !l.server.broker.Stopped() {
		select {
		case <-poll.C:
		case <-l.ended:
			return
		case <-ctx.Done():
			return
		}
	}
	l.inTurn(func() {
		for _, g := range l.guests {
			l.look(g)
		}
		l.send(msgBye, nil)
	})
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
}

func (l *served) inTurn(f func()) {
	l.turn.Lock()
	defer l.turn.Unlock()
	f()
}

// read is the goroutine that handles what the node asks.
func (l *served) read() {
	in := newReader(l.link)
	none := func(byte) bool { return false } // the core keeps no byte of a message
	for {
		kind, say, err := in.next(none)
		if err == nil {
			l.reading.Store(true)
			if l.buffered.Load() > MaxBuffered {
				l.flush()
			}
			err = l.handle(kind, say)
		}
		if err != nil {
			l.end(err)
			return
		}
		if !in.isReady() {
			l.lookAfter()
			l.flush()
			l.reading.Store(false)
			if l.isDirty() { // woken in between
				l.wakes.Set()
			}
		}
	}
}

func (l *served) handle(kind byte, say []byte) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	if err := l.reason(); err != nil {
		return err
	}
	if l.leaving {
		return nil
	}
	c := coder{buf: say, reading: true}
	switch kind {
	case msgBeat:
		l.w.buf = append(l.w.buf[:0], say...)
		at := l.server.broker.Now()
		signed(&l.w, &at)
		l.add(msgTime, l.w.buf)
		return nil
	case msgTell:
		l.server.owner.Told(l.node, bytes.Clone(say))
		return nil
	case msgAsk:
		return l.asked(&c)
	}
	number := c.uvarint(0)
	g := l.guests[number]
	switch {
	case c.err != nil || (g == nil) != (kind == msgOpen):
		return errMalformed
	case kind == msgOpen:
		return l.open(number, &c)
	case kind == msgClose:
		l.close(g)
	case kind == msgTook:
		if g.pushed, g.unread = g.pushed[:0], false; g.waiting {
			l.look(g)
		}
	case kind == msgDo:
		return l.do(g, &c)
	default:
		return errMalformed
	}
	return nil
}

// open opens a client.
func (l *served) open(number uint64, c *coder) error {
	var o core.ClientOptions
	var closes bool
	if clientOptions(c, &o, &closes); c.err != nil {
		return c.err
	}
	g := &guest{number: number}
	o.Wake = func() { l.wake(g) }
	if closes {
		o.Close = func() { l.send(msgDisconnect, binary.AppendUvarint(nil, number)) }
	}
	g.id = l.server.broker.Open(o)
	l.guests[number] = g
	l.server.clients.Add(1)
	return nil
}

// close closes a client. Jobs that it has not fetched go back as if they had not been leased.
func (l *served) close(g *guest) {
	l.giveBack(g)
	l.server.broker.Close(g.id)
	delete(l.guests, g.number)
	l.server.clients.Add(-1)
}

func (l *served) closeGuests() {
	l.turn.Lock()
	defer l.turn.Unlock()
	for _, g := range l.guests {
		l.close(g)
	}
}

// giveBack gives jobs back that were pushed and that the client has not fetched.
func (l *served) giveBack(g *guest) {
	if len(g.pushed) == 0 {
		return
	}
	back := make([]core.Op, len(g.pushed))
	for i, j := range g.pushed {
		back[i] = &core.Release{Ref: core.Ref{Seq: j.seq}, Epoch: j.epoch}
	}
	core.DoOnce(l.server.broker, core.Internal, back...)
	g.pushed = g.pushed[:0]
}

// do applies operations and sends all replies.
func (l *served) do(g *guest, c *coder) error {
	l.ops = l.ops[:0]
	for n := c.size(0, false); n > 0 && c.err == nil; n-- {
		l.ops = append(l.ops, nil)
		operation(c, &l.ops[len(l.ops)-1])
	}
	if c.err != nil || len(l.ops) == 0 {
		return errMalformed
	}
	if _, cancels := l.ops[0].(*core.CancelWaits); cancels {
		l.giveBack(g)
	}
	l.replies = l.server.broker.Do(g.id, l.ops, l.replies[:0])
	l.say(msgDone, g, l.replies)
	clear(l.ops)
	l.forget()
	return nil
}

// say sends replies to a client. Without replies, msgPush only wakes it.
func (l *served) say(kind byte, g *guest, all []core.Reply) {
	l.w.buf = binary.AppendUvarint(l.w.buf[:0], g.number)
	if kind == msgDone || len(all) > 0 {
		l.w.size(len(all), false)
	}
	for i := range all {
		g.held = max(g.held, all[i].Commit)
		reply(&l.w, &all[i])
	}
	if g.held <= l.server.broker.Committed() {
		g.held = 0 // the head of the same write tells it
	}
	l.add(kind, l.w.buf)
	if cap(l.w.buf) > keptBuffer {
		l.w.buf = nil
	}
}

// forget drops the replies that were sent.
func (l *served) forget() {
	clear(l.replies)
	if l.replies = l.replies[:0]; cap(l.replies) > 4096 {
		l.replies = nil
	}
}

// wake is the Wake of a client.
func (l *served) wake(g *guest) {
	if g.dirty.Swap(true) {
		return
	}
	l.dirtyMu.Lock()
	l.dirty = append(l.dirty, g)
	l.dirtyMu.Unlock()
	if !l.reading.Load() {
		l.wakes.Set()
	}
}

// push is the goroutine that sends what clients did not ask for now. It ends with the link.
func (l *served) push() {
	for {
		select {
		case <-l.wakes:
			l.lookAfter()
			l.flush()
		case <-l.ended:
			return
		}
	}
}

func (l *served) isDirty() bool {
	l.dirtyMu.Lock()
	defer l.dirtyMu.Unlock()
	return len(l.dirty) > 0
}

// lookAfter serves the clients that were woken.
func (l *served) lookAfter() {
	if !l.isDirty() {
		return
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	l.dirtyMu.Lock()
	dirty := l.dirty
	l.dirty = nil
	l.dirtyMu.Unlock()
	for _, g := range dirty {
		g.dirty.Store(false)
		if l.guests[g.number] == g && l.reason() == nil {
			l.look(g)
		}
	}
}

// look pushes the replies that wait for a client, if it has fetched those before, and tells it of the commit that its
// replies wait for.
func (l *served) look(g *guest) {
	if g.waiting = g.unread; !g.unread && !l.leaving {
		l.replies = l.server.broker.Do(g.id, nil, l.replies[:0])
		if len(l.replies) > 0 {
			g.unread = true
			for i := range l.replies {
				if r := &l.replies[i]; r.Kind == core.Assigned {
					g.pushed = append(g.pushed, jobLease{r.Seq, r.Lease.Epoch})
				}
			}
			l.say(msgPush, g, l.replies)
			l.forget()
			return
		}
	}
	if g.held != 0 && g.held <= l.server.broker.Committed() {
		g.held = 0
		l.say(msgPush, g, nil)
	}
}
