package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"broker/core"
	"broker/core/notify"
)

// Server serves clients of other nodes on the leader: each is a client of its broker.
//
// In front of the operations of a message that change something, it stores the number of that message under the name of
// the node, in the same commit or an earlier one. So the next leader knows which of a node's messages its history has,
// and the node knows which it may ask again.
type Server struct {
	broker  core.Broker
	options ServerOptions

	mu         sync.Mutex // guards the fields below
	links      map[*served]struct{}
	closed     bool
	changed    chan struct{} // closed and replaced when a node has registered its clients
	clients    atomic.Int64
	running    sync.WaitGroup // Serve
	stage      atomic.Int32   // a stage
	registered map[string]bool
}

// stage is how far a new leader has come with the clients of the leader before.
type stage = int32

// registering: nodes register their clients; resuming: leases are continued; serving: clients are served.
const (
	registering stage = iota
	resuming
	serving
)

// ServerOptions are what a Server says to nodes.
type ServerOptions struct {
	Node string // that leads; its own link is not counted
	Note []byte // at most 64 KiB
	Owner

	Term     uint64 // of this leader; increases from leader to leader
	Before   uint64 // number of the last commit of earlier leaders
	LastTerm uint64 // the term of that commit
}

// NewServer makes a server. Nodes may register their clients at once; they are served after Settle.
func NewServer(b core.Broker, o ServerOptions) *Server {
	return &Server{
		broker: b, options: o, links: make(map[*served]struct{}), changed: make(chan struct{}),
		registered: make(map[string]bool),
	}
}

// Settle waits until the given nodes have registered their clients, or ctx ends. Then the clients continue their
// leases, ended is called, and clients are served.
func (s *Server) Settle(ctx context.Context, nodes []string, ended func()) {
	for !s.haveRegistered(nodes) {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if s.haveRegistered(nodes) {
			break
		}
		select {
		case <-changed:
			continue
		case <-ctx.Done():
		}
		break
	}
	s.stage.Store(resuming)
	for _, l := range s.all() {
		l.inTurn(l.runLater)
	}
	ended()
	s.stage.Store(serving)
	for _, l := range s.all() {
		l.inTurn(l.serve)
	}
}

func (s *Server) haveRegistered(nodes []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(nodes, func(n string) bool { return !s.registered[n] })
}

func (s *Server) all() (all []*served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.links {
		all = append(all, l)
	}
	return all
}

// Counts are the links to other nodes, their clients, and the bytes that wait to be written to them.
func (s *Server) Counts() (links, clients int, buffered int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.links {
		if l.node.node != s.options.Node {
			links++
			buffered += l.buffered.Load()
		}
	}
	return links, int(s.clients.Load()), buffered
}

// served is a link to a node.
type served struct {
	*link
	server *Server

	dirtyMu sync.Mutex // guards dirty
	dirty   []*guest   // whose Wake was called since they were looked at
	wakes   notify.Signal

	owned      *Node
	node       nodeHello
	registered bool // all its clients are registered
	told       bool // msgServe was sent
	later      [][]byte

	turn    sync.Mutex // held by the goroutine that uses clients; guards the fields below and the three above
	guests  map[uint64]*guest
	ops     []core.Op
	replies []core.Reply
	r, w    coder       // for messages
	leaving bool        // no operation is taken any more
	newest  core.Commit // that replies have depended on
	spare   spareOps
	marks   core.WriteMeta // see mark; its value is used again

	commit  atomic.Uint64 // the newest that was told, or is about to be
	durable atomic.Bool   // a newer one is to be told
	reading atomic.Bool   // read will look after those that are woken, and tell commits
	overdue atomic.Bool   // replies are to leave although there is more to read; see say
	done    chan struct{} // closed when no client is left
}

// errReplaced ends a link whose node has another one.
var errReplaced = errors.New("the node has opened another link")

// errLeadLost ends the links to a leader that has stopped: another node may lead.
var errLeadLost = errors.New("this node no longer leads")

// guest is a client of the node. The turn of its link guards it.
type guest struct {
	number uint64 // at its node
	id     core.ClientID
	dirty  atomic.Bool

	held    core.Commit // the newest commit that replies wait for at the node
	pushed  []jobLease  // jobs that were pushed and that the client has not fetched
	lasting bool        // its leases do not end with its connection
	unread  bool        // replies were pushed that the client has not fetched
	waiting bool        // more replies may wait
}

// Serve speaks to a node over a connection until either side ends it. It takes ownership of the connection.
func (s *Server) Serve(conn net.Conn) error {
	note, err := readHello(conn)
	if answer := writeHello(conn, s.options.Note); err == nil {
		err = answer
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	l := &served{server: s, guests: make(map[uint64]*guest), wakes: notify.NewSignal(), done: make(chan struct{})}
	l.owned = &Node{l}
	l.marks = core.WriteMeta{Tag: markTag, Entries: []core.MetaEntry{{Value: make([]byte, 0, 16)}}}
	if err == nil {
		c := coder{buf: note, reading: true}
		l.node.code(&c)
		err = c.err
		l.marks.Entries[0].Name = markPrefix + l.node.node
	}
	const head = 10 // msgCommit with its length
	l.link = newLink(conn, head, func(b []byte) {
		commit := uint64(s.broker.Committed())
		l.commit.Store(commit)
		b[0], b[1] = head-1, msgCommit
		binary.BigEndian.PutUint64(b[2:], commit)
	})
	if err != nil || !s.add(l) {
		_ = conn.Close() // nothing was promised
		return err
	}
	defer s.remove(l)
	l.sayHistory()
	var parts sync.WaitGroup
	parts.Go(l.write) // these end with the link
	parts.Go(func() { l.beat(func() {}) })
	parts.Go(l.push)
	l.read()
	parts.Wait()
	l.closeGuests()
	s.options.Left(l.owned)
	return l.reason()
}

// add adds a link, after the end of the node's link before: its operations were applied by then, or never are.
func (s *Server) add(l *served) bool {
	for {
		s.mu.Lock()
		var before *served
		for o := range s.links {
			if o.node.node == l.node.node {
				before = o
			}
		}
		if s.closed || before == nil {
			break
		}
		s.mu.Unlock()
		before.end(errReplaced)
		<-before.done
	}
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
	close(l.done)
	s.running.Done()
}

// Close ends all links. What clients of other nodes were told depends on commits: it is told them first, until ctx is
// done. It returns when no client is left.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var each sync.WaitGroup
	for _, l := range s.all() {
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
			if err = l.handle(kind, say); l.overdue.Swap(false) || l.buffered.Load() > maxBuffered {
				l.flush()
			}
		}
		if err != nil {
			l.end(err)
			return
		}
		if !in.isReady() {
			l.lookAfter()
			l.flush()
			l.reading.Store(false)
			if l.isDirty() { // in between
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
	l.r = coder{buf: say, reading: true, spare: &l.spare}
	c := &l.r
	switch kind {
	case msgBeat:
		l.w.buf = append(l.w.buf[:0], say...)
		at := l.server.broker.Now()
		signed(&l.w, &at)
		l.add(msgTime, l.w.buf)
		return nil
	case msgTell:
		l.server.options.Told(l.owned, bytes.Clone(say))
		return nil
	case msgAsk:
		return l.asked(c)
	case msgRegistered:
		l.registered = true
		l.server.noteRegistered(l.node.node)
		l.serve()
		return nil
	case msgLater:
		return l.doLater(say)
	}
	number := c.uvarint(0)
	g := l.guests[number]
	switch {
	case c.err != nil || (g == nil) != (kind == msgOpen):
		return errMalformed
	case kind == msgOpen:
		return l.open(number, c)
	case kind == msgClose:
		l.close(g)
	case kind == msgTook:
		if g.pushed, g.unread = g.pushed[:0], false; g.waiting {
			l.look(g)
		}
	case kind == msgWait:
		return l.do(g, c, true)
	case kind == msgDo:
		l.node.number++
		return l.do(g, c, false)
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
	if l.node.wakes {
		o.Durable = l.noteDurable
	}
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
	if !l.leaving { // otherwise it goes on at the next leader, with its leases
		l.server.broker.Close(g.id)
	}
	delete(l.guests, g.number)
	l.server.clients.Add(-1)
}

func (l *served) closeGuests() {
	l.turn.Lock()
	defer l.turn.Unlock()
	for _, g := range l.guests {
		if g.lasting || l.leaving { // its node gives back what it has not fetched
			g.pushed = nil
		}
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

// do applies operations and sends all replies. push says that the client will fetch them later.
func (l *served) do(g *guest, c *coder, push bool) error {
	l.ops = l.ops[:0]
	for n := c.size(0, false); n > 0 && c.err == nil; n-- {
		l.ops = append(l.ops, nil)
		operation(c, &l.ops[len(l.ops)-1])
		if lease, is := l.ops[len(l.ops)-1].(*core.Lease); is {
			g.lasting = lease.Holder != core.HeldByConn
		}
	}
	if c.err != nil || len(l.ops) == 0 {
		return errMalformed
	}
	if _, cancels := l.ops[0].(*core.CancelWaits); cancels {
		l.giveBack(g)
	}
	l.mark()
	l.replies = l.server.broker.Do(g.id, l.ops, l.replies[:0])
	l.replies = slices.DeleteFunc(l.replies, func(r core.Reply) bool { return r.Tag == markTag })
	sayCreated(l.ops, l.replies)
	if push {
		g.notePushed(l.replies)
	}
	l.say(msgDone, g, l.replies)
	l.spare.give(l.ops)
	clear(l.ops)
	l.forget()
	return nil
}

// sayCreated adds the time of its creation to the reply to a submission. If the job is lost with the leader, it comes
// back with the id that follows from that time.
func sayCreated(ops []core.Op, replies []core.Reply) {
	if !slices.ContainsFunc(replies, func(r core.Reply) bool { return r.Kind == core.Submitted }) {
		return
	}
	answered := pairsOf(ops)
	for i := range replies {
		r := &replies[i]
		op := answered.find(r.Tag)
		if op < 0 || r.Kind != core.Submitted || r.Existing {
			continue
		}
		if s, is := ops[op].(*core.Submit); is {
			r.Cursor = uint64(s.Job.CreatedAt)
		}
	}
}

// createdAt is what sayCreated has added.
func createdAt(r *core.Reply) core.Instant { return core.Instant(r.Cursor) }

// markTag is the tag of the operation that stores the number of a message. Clients count their tags up from one.
const markTag = math.MaxUint64 - 1

// markPrefix begins the names under which numbers of messages are stored.
const markPrefix = "remote/"

// mark puts an operation that stores the number of the message in front of operations that change something. What is in
// the history then follows it, in the same commit or a later one.
func (l *served) mark() {
	if !counts(l.ops) {
		return
	}
	at := 0
	if _, cancels := l.ops[0].(*core.CancelWaits); cancels { // no other may precede it
		at = 1
	}
	e := &l.marks.Entries[0]
	e.Value = binary.BigEndian.AppendUint64(e.Value[:0], l.node.incarnation)
	e.Value = binary.BigEndian.AppendUint64(e.Value, l.node.number)
	l.ops = slices.Insert(l.ops, at, core.Op(&l.marks))
}

// sayHistory tells the node which history this leader has.
func (l *served) sayHistory() {
	o := &l.server.options
	h := history{term: o.Term, before: o.Before, lastTerm: o.LastTerm}
	for _, r := range core.DoOnce(l.server.broker, core.Internal, &core.ReadMeta{Name: markPrefix + l.node.node}) {
		if len(r.Data) == 16 && binary.BigEndian.Uint64(r.Data) == l.node.incarnation {
			h.applied = binary.BigEndian.Uint64(r.Data[8:])
		}
	}
	var c coder
	h.code(&c)
	l.send(msgHistory, c.buf)
}

func (s *Server) noteRegistered(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registered[node] = true
	close(s.changed)
	s.changed = make(chan struct{})
}

// serve tells the node that it is served, once it is.
func (l *served) serve() {
	if l.registered && !l.told && l.server.stage.Load() == serving {
		l.told = true
		l.send(msgServe, nil)
	}
}

// doLater keeps operations until all nodes have registered their clients.
func (l *served) doLater(say []byte) error {
	if l.server.stage.Load() == registering {
		l.later = append(l.later, slices.Clone(say))
		return nil
	}
	c := coder{buf: say, reading: true, spare: &l.spare}
	g := l.guests[c.uvarint(0)]
	if g == nil {
		return nil // the client has left
	}
	return l.do(g, &c, false)
}

// runLater applies what was kept.
func (l *served) runLater() {
	for _, say := range l.later {
		if err := l.doLater(say); err != nil {
			l.end(err)
			return
		}
	}
	l.later = nil
}

// say sends replies to a client. Without replies, msgPush only wakes it. That this broker has stopped is not for
// clients: the link ends, and they continue at the next leader.
//
// The first reply of a commit does not wait until all is read, nor do those before: the commit before is on its way to
// other nodes. If this one dies, the next leader may have it, and the replies are lost that have not left.
func (l *served) say(kind byte, g *guest, all []core.Reply) {
	if slices.ContainsFunc(all, func(r core.Reply) bool { return errors.Is(r.Err, core.ErrStopped) }) {
		l.end(errLeadLost)
		return
	}
	l.w.buf = binary.AppendUvarint(l.w.buf[:0], g.number)
	if kind == msgDone || len(all) > 0 {
		l.w.size(len(all), false)
	}
	for i := range all {
		g.held = max(g.held, all[i].Commit)
		reply(&l.w, &all[i])
	}
	if g.held > l.newest {
		l.newest = g.held
		l.overdue.Store(true)
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

// noteDurable is the Durable of clients whose node wakes them itself once it is told of the commit.
func (l *served) noteDurable() {
	if l.isTold() {
		return
	}
	if !l.durable.Swap(true) && !l.reading.Load() {
		l.wakes.Set()
	}
}

// isTold reports whether the node is told of the newest commit.
func (l *served) isTold() bool { return l.commit.Load() >= uint64(l.server.broker.Committed()) }

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

// isDirty reports whether a commit is to be told, or clients were woken.
func (l *served) isDirty() bool {
	l.dirtyMu.Lock()
	defer l.dirtyMu.Unlock()
	return l.durable.Load() || len(l.dirty) > 0
}

// lookAfter serves the clients that were woken. The head of the next write tells the newest commit.
func (l *served) lookAfter() {
	if !l.isDirty() {
		return
	}
	if l.durable.Swap(false) && !l.isTold() {
		l.touch()
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

// notePushed notes that the client is to fetch replies.
func (g *guest) notePushed(replies []core.Reply) {
	g.unread = g.unread || len(replies) > 0
	for i := range replies {
		if r := &replies[i]; r.Kind == core.Assigned {
			g.pushed = append(g.pushed, jobLease{r.Seq, r.Lease.Epoch})
		}
	}
}

// look pushes the replies that wait for a client, if it has fetched those before. If its node does not wake it, it is
// told of the commit that its replies wait for.
func (l *served) look(g *guest) {
	if g.waiting = g.unread; !g.unread && !l.leaving {
		l.replies = l.server.broker.Do(g.id, nil, l.replies[:0])
		if len(l.replies) > 0 {
			g.notePushed(l.replies)
			l.say(msgPush, g, l.replies)
			l.forget()
			return
		}
	}
	if g.held != 0 && g.held <= l.server.broker.Committed() {
		if g.held = 0; !l.node.wakes {
			l.say(msgPush, g, nil)
		}
	}
}
