package remote

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/notify"
)

const (
	// answerBeats is how many beats an answer may take before the link is given up.
	answerBeats = 30

	// awayFor is how long clients wait for a next leader before their connections are closed.
	awayFor = 10 * time.Second

	// maxKept is how many bytes of jobs whose clients wait for the result a node keeps to register them again. Clients
	// of others are closed when the leader changes.
	maxKept = 64 << 20
)

// Broker is the leader's broker for the clients of this node. It uses one link after the other: when the leader
// changes, its clients continue at the next one. Do waits for the leader's answer.
type Broker struct {
	options     BrokerOptions
	incarnation uint64 // of this broker
	time        leaderTime
	questions   questions

	committed atomic.Uint64 // what clients were told; see Uplink.shift
	keptBytes atomic.Int64  // of jobs in kept.watches
	closed    atomic.Bool   // no clients are taken any more; set with mu held

	mu      sync.RWMutex // guards the fields below
	clients map[core.ClientID]*client
	next    core.ClientID
	up      *Uplink // the link in use, alive or not; nil: there was none. current is the same
	away    *time.Timer

	current atomic.Pointer[Uplink]

	left client // has the leases of clients that have left, and number 0; it is not in clients

	asking sync.Mutex // held while messages get their numbers
	number uint64     // of the last message with operations; guarded by asking

	waitingMu sync.Mutex // guards waiting
	waiting   []waiting

	unsureMu sync.Mutex // guards the fields below
	unsure   []*asked   // what depends on commits that the leader has not told yet
	highest  uint64     // the highest commit in them, as clients see it
}

var _ core.Broker = (*Broker)(nil)

// BrokerOptions are for NewBroker.
type BrokerOptions struct {
	Node  string // id of this node
	Clock clock.Monotonic
	Told  func(say []byte) // gets what Node.Tell sends, on one goroutine; it must not block

	// Register is called with each link, after the clients are registered with the leader and before anything else is
	// asked: the owner asks what the leader is to know of it. It must not block, nor must what handles an answer. If an
	// answer does not come, the next link registers all again. May be nil.
	Register func(ask func(say []byte, handle func(answer []byte)))
}

// NewBroker makes a broker for the clients of a node, which wait until it is linked to a leader.
func NewBroker(o BrokerOptions) *Broker {
	b := &Broker{options: o, incarnation: rand.Uint64(), clients: make(map[core.ClientID]*client)}
	b.left.options = core.ClientOptions{Protocol: core.Internal, Wake: func() {}, Unlisted: true}
	return b
}

// client is a client of this node.
type client struct {
	options core.ClientOptions
	done    notify.Signal // the answer has come, or the client is dropped
	asked   atomic.Uint64 // the beat at which it asked; 0: it waits for no answer

	mu      sync.Mutex // guards the fields below
	id      core.ClientID
	up      *Uplink // where it is open; nil: nowhere
	gone    bool    // it was closed, or dropped
	ops     []core.Op
	say     *coder       // ops as a message; nil: it asks nothing
	number  uint64       // of that message; 0: it was not sent
	trace   trace        // of that message
	answer  list         // to it
	before  []list       // pushed before the answer
	pushed  []list       // that it has not fetched
	ready   []core.Reply // that the change of the leader has left of what was pushed
	result  []core.Reply // the answer, if it was read while the leader changed
	kept    kept
	awaits  core.Commit // the last one in Broker.waiting for it
	lost    []*lost     // operations to ask again
	back    []core.Op   // they return jobs that were pushed, and that it had not fetched when the link ended
	expects []expect    // answers that are not for Do
}

// list is a list of replies from a leader.
type list struct {
	replies []byte
	shift   uint64      // of its commits
	told    core.Commit // before it, as the leader counts
}

// asked is a message whose answer depends on a commit that was not told yet.
type asked struct {
	client *client
	commit core.Commit  // as the leader counts
	ended  []endedLease // by it

	say    *coder // operations behind the number of the client; nil: ops
	answer list

	ops     []core.Op
	replies []core.Reply
}

// lost is an operation whose reply depends on a commit that the next leader does not have.
type lost struct {
	op     core.Op
	reply  core.Reply
	number uint64 // of the message that asked again; 0: none
}

// Open implements core.Broker.
func (b *Broker) Open(o core.ClientOptions) core.ClientID {
	if o.Durable == nil {
		o.Durable = o.Wake
	}
	c := &client{options: o, done: notify.NewSignal()}
	b.mu.Lock()
	b.next++
	c.id = b.next
	refused := b.closed.Load()
	if !refused {
		b.clients[c.id] = c
		if b.up != nil && b.up.live {
			b.up.open(c)
		}
	}
	b.mu.Unlock()
	switch {
	case !refused:
	case o.Close != nil:
		o.Close()
	case o.Lost != nil:
		o.Lost(true)
	}
	return c.id
}

// clientOptions are what the leader needs to know of a client.
func clientOptions(c *coder, o *core.ClientOptions, closes *bool) {
	unsigned(c, &o.Protocol)
	c.text(&o.Address)
	c.text(&o.Identity)
	c.text(&o.Name)
	c.flags(&o.Unlisted, closes)
}

// Close implements core.Broker.
func (b *Broker) Close(id core.ClientID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.clients[id]
	if c == nil {
		return
	}
	delete(b.clients, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		b.leave(c)
	}
	c.gone = true
	for tag := range c.kept.watches {
		b.unwatch(&c.kept, tag)
	}
	if c.up != nil && c.up == b.up {
		b.up.link.send(msgClose, binary.AppendUvarint(nil, uint64(id)))
		b.up.forget(c)
	}
}

// messages are buffers for what is asked.
var messages = sync.Pool{New: func() any { return new(coder) }}

// Do implements core.Broker.
func (b *Broker) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	if len(ops) == 0 {
		return b.fetch(id, into)
	}
	w := messages.Get().(*coder)
	w.buf = w.buf[:0]
	unsigned(w, &id)
	operations(w, &ops)
	c := b.ask(id, ops, w)
	if c == nil {
		w.recycle()
		return refuse(ops, into)
	}
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked.Store(0)
	if c.gone {
		c.ops, c.say = nil, nil
		return refuse(ops, into)
	}
	if c.say != nil {
		b.read(c)
	}
	from := len(into)
	into = append(into, c.result...)
	clear(c.result)
	if c.result = c.result[:0]; cap(c.result) > 1024 {
		c.result = nil
	}
	b.awaitCommit(c, into[from:])
	return into
}

// recycle gives a buffer back.
func (c *coder) recycle() {
	if cap(c.buf) <= keptBuffer {
		messages.Put(c)
	}
}

// fetch appends what was pushed.
func (b *Broker) fetch(id core.ClientID, into []core.Reply) []core.Reply {
	b.mu.RLock()
	c := b.clients[id]
	b.mu.RUnlock()
	if c == nil {
		return into
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := len(into)
	into = append(into, c.ready...)
	c.ready = nil
	from := len(into)
	into = c.decodeAll(b, c.pushed, into)
	b.pushed(c, into[from:])
	c.took(c.pushed)
	c.pushed = nil
	b.awaitCommit(c, into[first:])
	return into
}

// waiting is a client some of whose replies depend on a commit that it was not told of yet; as clients see it.
type waiting struct {
	client *client
	commit core.Commit
}

// awaitCommit notes that a client is to be woken for the commits that replies depend on. Its lock is held.
func (b *Broker) awaitCommit(c *client, replies []core.Reply) {
	for i := range replies {
		commit := replies[i].Commit
		if commit <= b.Committed() || commit == c.awaits {
			continue
		}
		b.waitingMu.Lock()
		if commit > b.Committed() { // otherwise it was told in the meantime
			b.waiting = append(b.waiting, waiting{c, commit})
			c.awaits = commit
		}
		b.waitingMu.Unlock()
	}
}

// wakeWaiting wakes the clients that wait for what was told.
func (b *Broker) wakeWaiting() {
	told := b.Committed()
	var due []waiting
	b.waitingMu.Lock()
	b.waiting = slices.DeleteFunc(b.waiting, func(w waiting) bool {
		if w.commit <= told {
			due = append(due, w)
		}
		return w.commit <= told
	})
	b.waitingMu.Unlock()
	for _, w := range due {
		w.client.options.Durable()
	}
}

// took tells the leader that there is room for more.
func (c *client) took(pushed []list) {
	if len(pushed) > 0 && c.up != nil {
		c.up.link.send(msgTook, binary.AppendUvarint(nil, uint64(c.id)))
	}
}

// ask sends operations to the leader, or leaves them for the next one. It returns nil if there is no such client.
func (b *Broker) ask(id core.ClientID, ops []core.Op, say *coder) *client {
	if up := b.current.Load(); up != nil {
		n := int64(len(say.buf))
		up.link.takeRoom(n)
		defer up.link.giveRoom(n)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	c := b.clients[id]
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil
	}
	c.ops, c.say, c.number = ops, say, 0
	if b.up != nil && b.up.live {
		b.up.ask(c)
	}
	return c
}

// read reads the answer to what a client has asked, and keeps what the client has by it. The client's lock is held.
func (b *Broker) read(c *client) {
	replies := append(c.result[:0], c.ready...)
	c.ready = nil
	from := len(replies)
	replies = c.decodeAll(b, c.before, replies)
	if _, cancels := c.ops[0].(*core.CancelWaits); cancels { // the leader has given the jobs back
		replies = slices.DeleteFunc(replies, func(r core.Reply) bool { return r.Kind != core.EventReply })
	} else {
		b.pushed(c, replies[from:])
	}
	c.took(c.before)
	from = len(replies)
	replies = c.decode(b, c.answer, replies)
	answer := replies[from:]
	ended := b.note(&c.kept, c.ops, answer)
	if commit := newest(answer); commit > b.Committed() {
		b.doubt(&asked{
			client: c, commit: commit - core.Commit(c.answer.shift), say: c.say, answer: c.answer, ended: ended,
		}, commit)
	} else {
		c.say.recycle()
	}
	c.result, c.ops, c.say, c.number, c.answer, c.before = replies, nil, nil, 0, list{}, nil
}

// newest is the newest commit that replies depend on.
func newest(replies []core.Reply) (commit core.Commit) {
	for i := range replies {
		commit = max(commit, replies[i].Commit)
	}
	return commit
}

// pushed keeps what a client has by replies that were pushed, and that it gets now.
func (b *Broker) pushed(c *client, replies []core.Reply) {
	for i := range replies {
		r := &replies[i]
		b.notePush(&c.kept, r)
		if (r.Kind == core.Ended || r.Kind == core.Assigned) && r.Commit > b.Committed() {
			b.doubt(&asked{client: c, commit: r.Commit - core.Commit(c.up.shift), replies: []core.Reply{*r}}, r.Commit)
		}
	}
}

// doubt keeps what depends on a commit that was not told yet. shown is the commit as clients see it.
func (b *Broker) doubt(a *asked, shown core.Commit) {
	b.unsureMu.Lock()
	defer b.unsureMu.Unlock()
	b.unsure = append(b.unsure, a)
	b.highest = max(b.highest, uint64(shown))
}

// certain forgets what depended on commits of the leader up to one.
func (b *Broker) certain(commit core.Commit) {
	b.unsureMu.Lock()
	defer b.unsureMu.Unlock()
	n := 0
	for n < len(b.unsure) && b.unsure[n].commit <= commit {
		n++
	}
	if n == 0 {
		return
	}
	for _, a := range b.unsure[:n] {
		if a.say != nil {
			a.say.recycle()
		}
	}
	clear(b.unsure[:n])
	if b.unsure = b.unsure[n:]; len(b.unsure) == 0 {
		b.unsure = nil
	}
}

// decodeAll is decode for several lists.
func (c *client) decodeAll(b *Broker, all []list, into []core.Reply) []core.Reply {
	for _, l := range all {
		into = c.decode(b, l, into)
	}
	return into
}

// decode is Broker.decode for replies to the client, whose lock is held.
func (c *client) decode(b *Broker, l list, into []core.Reply) []core.Reply {
	c.kept.told = max(c.kept.told, l.told+core.Commit(l.shift))
	return b.decode(l, into)
}

// decode appends a list of replies, which use its memory from then on.
func (b *Broker) decode(l list, into []core.Reply) []core.Reply {
	if l.replies == nil {
		return into
	}
	c := coder{buf: l.replies, reading: true, aliases: true}
	for n := c.size(0, false); n > 0 && c.err == nil; n-- {
		into = append(into, core.Reply{})
		r := &into[len(into)-1]
		if reply(&c, r); r.Commit != 0 {
			r.Commit += core.Commit(l.shift)
		}
	}
	if c.err != nil {
		b.current.Load().link.end(c.err)
	}
	return into
}

// refuse appends the replies to operations that nobody can apply any more.
func refuse(ops []core.Op, into []core.Reply) []core.Reply {
	for _, op := range ops {
		if tag := op.TagOf(); tag != 0 {
			into = append(into, core.Reply{Kind: core.Failed, Tag: tag, Err: core.ErrShutdown})
		}
	}
	return into
}

// Committed implements core.Broker: the newest commit that the leader has told.
func (b *Broker) Committed() core.Commit { return core.Commit(b.committed.Load()) }

// Stopped implements core.Broker.
func (b *Broker) Stopped() bool { return b.closed.Load() }

// Now implements core.Broker: the time of the leader's broker.
func (b *Broker) Now() core.Instant {
	_, now := b.options.Clock.Read()
	return b.time.at(now)
}

// Clients is the number of clients.
func (b *Broker) Clients() int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return len(b.clients)
}

// Buffered is how many bytes wait to be written to the leader.
func (b *Broker) Buffered() int64 {
	if up := b.current.Load(); up != nil {
		return up.link.buffered.Load()
	}
	return 0
}

// Tell sends bytes to the owner of the leader's Server. They may be lost with the link.
func (b *Broker) Tell(say []byte) {
	if up := b.current.Load(); up != nil {
		up.link.send(msgTell, say)
	}
}

// Shut drops all clients and refuses others.
func (b *Broker) Shut() {
	b.mu.Lock()
	b.closed.Store(true)
	up := b.up
	b.mu.Unlock()
	b.dropAll()
	if up != nil {
		up.Hangup()
	}
}

// dropAll ends all clients: what was under way may or may not apply, and no client is told either.
func (b *Broker) dropAll() {
	b.mu.RLock()
	all := b.sorted()
	b.mu.RUnlock()
	for _, c := range all {
		c.drop()
	}
	b.questions.refuse()
}

// sorted are all clients in the order of their numbers. The broker's lock is held.
func (b *Broker) sorted() []*client {
	all := make([]*client, 0, len(b.clients))
	for _, c := range b.clients {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *client) int { return cmp.Compare(a.id, b.id) })
	return all
}

// drop ends a client of which is not known what it may be told. Its connection is closed first, so that it is not told
// what follows.
func (c *client) drop() {
	if c.options.Close != nil {
		c.options.Close()
	}
	c.mu.Lock()
	c.gone = true
	if c.options.Close == nil && c.options.Lost != nil {
		c.options.Lost(c.say != nil && c.number == 0)
	}
	c.mu.Unlock()
	c.done.Set()
	if c.options.Close == nil {
		c.options.Wake()
	}
}

var (
	errUnanswered = errors.New("the leader does not answer an operation")
	errBye        = errors.New("the leader stops")
)
