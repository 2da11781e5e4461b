package remote

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/notify"
)

// answerBeats is how many beats an answer may take before the link is given up.
const answerBeats = 30

var errUnanswered = errors.New("the leader does not answer an operation")

// Broker is the leader's broker for the clients of this node, over one link. It lives as long as the link: when that
// has ended, it calls Close of all clients and refuses what they ask. Do waits for the leader's answer.
type Broker struct {
	link  *link
	note  []byte
	clock clock.Monotonic
	told  func(say []byte)

	committed atomic.Uint64
	time      leaderTime
	questions questions
	beats     atomic.Uint64 // since the link began, from 1

	mu      sync.RWMutex // guards the fields below
	clients map[core.ClientID]*client
	next    core.ClientID
	closing bool // no clients are taken any more

	gone    chan struct{} // closed when all is refused
	running sync.WaitGroup
}

var _ core.Broker = (*Broker)(nil)

// client is a client of this node.
type client struct {
	wake, close func()
	asked       atomic.Uint64 // the beat at which it asked; 0: it waits for no answer
	done        notify.Signal // answer is set

	mu     sync.Mutex // guards the fields below
	pushed [][]byte   // lists of replies that it has not fetched
	before [][]byte   // of these, what came before the answer
	answer []byte
}

// Dial begins to speak to the leader over a connection, and takes ownership of it. It waits for the leader's hello
// until the deadline of the connection. A *FormatError says that the leader speaks another format. told gets what
// Node.Tell sends, on one goroutine; it must not block.
func Dial(conn net.Conn, c clock.Monotonic, told func(say []byte)) (*Broker, error) {
	err := writeHello(conn, nil)
	var note []byte
	if err == nil {
		note, err = readHello(conn)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	b := &Broker{
		note: note, clock: c, told: told, clients: make(map[core.ClientID]*client), gone: make(chan struct{}),
	}
	b.link = newLink(conn, 0, func([]byte) {})
	b.beats.Store(1)
	timed := make(chan struct{})
	b.running.Go(b.link.write) // these end with the link
	b.running.Go(func() { b.read(sync.OnceFunc(func() { close(timed) })) })
	b.running.Go(func() { b.link.beat(b.beat) })
	b.running.Go(b.finish)
	b.askTime()
	select {
	case <-timed:
		return b, nil
	case <-b.link.ended:
		b.running.Wait()
		return nil, b.link.reason()
	}
}

// Note is what the leader has said in its hello.
func (b *Broker) Note() []byte { return b.note }

// Buffered is how many bytes wait to be written to the leader.
func (b *Broker) Buffered() int64 { return b.link.buffered.Load() }

// Gone is closed when the link has ended and all clients are closed.
func (b *Broker) Gone() <-chan struct{} { return b.gone }

// Reason is why the link has ended.
func (b *Broker) Reason() error { return b.link.reason() }

// Hangup ends the link, and returns when no goroutine of it is left.
func (b *Broker) Hangup() {
	b.link.end(errClosed)
	b.running.Wait()
}

// Tell sends bytes to the owner of the leader's Server. They may be lost with the link.
func (b *Broker) Tell(say []byte) { b.link.send(msgTell, say) }

// finish refuses all once the link has ended. The connections of clients are closed first, so that none answers its
// client with what follows from the end of the link: the fate of what was under way is unknown. Clients without a
// connection are woken and see Stopped.
func (b *Broker) finish() {
	<-b.link.ended
	b.mu.Lock()
	b.closing = true
	closes, wakes := make([]func(), 0, len(b.clients)), []func(){}
	for _, c := range b.clients {
		if c.close != nil {
			closes = append(closes, c.close)
		} else {
			wakes = append(wakes, c.wake)
		}
	}
	b.mu.Unlock()
	for _, end := range closes {
		end()
	}
	close(b.gone)
	for _, wake := range wakes {
		wake()
	}
}

// Open implements core.Broker.
func (b *Broker) Open(o core.ClientOptions) core.ClientID {
	c := &client{wake: o.Wake, close: o.Close, done: notify.NewSignal()}
	b.mu.Lock()
	b.next++
	id, refused := b.next, b.closing
	if !refused {
		b.clients[id] = c
	}
	b.mu.Unlock()
	if refused {
		if o.Close != nil {
			o.Close()
		}
		return id
	}
	w := coder{}
	closes := o.Close != nil
	unsigned(&w, &id)
	clientOptions(&w, &o, &closes)
	b.link.send(msgOpen, w.buf)
	return id
}

// clientOptions are what the leader needs to know of a client.
func clientOptions(c *coder, o *core.ClientOptions, closes *bool) {
	unsigned(c, &o.Protocol)
	c.text(&o.Address)
	c.text(&o.Identity)
	c.text(&o.Name)
	c.flags(&o.Unlisted, closes)
}

func (b *Broker) client(id core.ClientID) *client {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.clients[id]
}

// Close implements core.Broker.
func (b *Broker) Close(id core.ClientID) {
	b.mu.Lock()
	c := b.clients[id]
	delete(b.clients, id)
	b.mu.Unlock()
	if c != nil {
		b.link.send(msgClose, binary.AppendUvarint(nil, uint64(id)))
	}
}

// messages are buffers for what is asked.
var messages = sync.Pool{New: func() any { return new(coder) }}

// Do implements core.Broker.
func (b *Broker) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	c := b.client(id)
	if c == nil {
		return refuse(ops, into)
	}
	if len(ops) == 0 {
		c.mu.Lock()
		pushed := c.pushed
		c.pushed = nil
		c.mu.Unlock()
		return b.take(id, pushed, into)
	}
	b.ask(id, c, ops)
	select {
	case <-c.done:
	case <-b.gone:
		return refuse(ops, into)
	}
	c.asked.Store(0)
	c.mu.Lock()
	before, answer := c.before, c.answer
	c.before, c.answer = nil, nil
	c.mu.Unlock()
	from := len(into)
	into = b.take(id, before, into)
	if _, cancels := ops[0].(*core.CancelWaits); cancels { // the leader has given the jobs back
		kept := slices.DeleteFunc(into[from:], func(r core.Reply) bool { return r.Kind != core.EventReply })
		into = into[:from+len(kept)]
	}
	return b.decode(answer, into)
}

// ask sends operations to the leader.
func (b *Broker) ask(id core.ClientID, c *client, ops []core.Op) {
	b.link.waitForRoom()
	w := messages.Get().(*coder)
	w.buf = w.buf[:0]
	unsigned(w, &id)
	operations(w, &ops)
	c.asked.Store(b.beats.Load())
	b.link.send(msgDo, w.buf)
	if cap(w.buf) <= keptBuffer {
		messages.Put(w)
	}
}

// take appends replies that were pushed, and tells the leader that there is room for others.
func (b *Broker) take(id core.ClientID, pushed [][]byte, into []core.Reply) []core.Reply {
	for _, list := range pushed {
		into = b.decode(list, into)
	}
	if len(pushed) > 0 {
		b.link.send(msgTook, binary.AppendUvarint(nil, uint64(id)))
	}
	return into
}

// decode appends a list of replies, which use its memory from then on.
func (b *Broker) decode(list []byte, into []core.Reply) []core.Reply {
	c := coder{buf: list, reading: true, aliases: true}
	for n := c.size(0, false); n > 0 && c.err == nil; n-- {
		into = append(into, core.Reply{})
		reply(&c, &into[len(into)-1])
	}
	if c.err != nil {
		b.link.end(c.err)
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
func (b *Broker) Stopped() bool {
	select {
	case <-b.gone:
		return true
	default:
		return false
	}
}

// Now implements core.Broker: the time of the leader's broker.
func (b *Broker) Now() core.Instant {
	_, now := b.clock.Read()
	return b.time.at(now)
}

// beat asks for the leader's time, and gives the link up if an operation has no answer.
func (b *Broker) beat() {
	now := b.beats.Add(1)
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, c := range b.clients {
		if asked := c.asked.Load(); asked != 0 && now-asked > answerBeats {
			b.link.end(errUnanswered)
		}
	}
	b.askTime()
}

func (b *Broker) askTime() {
	_, now := b.clock.Read()
	b.link.send(msgBeat, binary.AppendUvarint(nil, uint64(now)))
}

// read is the goroutine that handles what the leader says.
func (b *Broker) read(timed func()) {
	in := newReader(b.link)
	owned := func(kind byte) bool {
		switch kind {
		case msgDone, msgPush, msgAnswer, msgSay:
			return true
		}
		return false
	}
	for {
		kind, say, err := in.next(owned)
		if err == nil {
			err = b.handle(kind, say, timed)
		}
		if err != nil {
			b.link.end(err)
			return
		}
	}
}

// errBye ends a link whose leader has said all.
var errBye = errors.New("the leader stops")

// flushFor is how long clients get what the leader has told last, before their connections are closed.
const flushFor = 100 * time.Millisecond

func (b *Broker) handle(kind byte, say []byte, timed func()) error {
	c := coder{buf: say, reading: true}
	switch kind {
	case msgCommit:
		b.committed.Store(binary.BigEndian.Uint64(say))
		return nil
	case msgTime:
		sent, at := c.uvarint(0), core.Instant(0)
		signed(&c, &at)
		if c.err == nil {
			_, now := b.clock.Read()
			b.time.learn(time.Duration(sent), now, at)
			timed()
		}
		return c.err
	case msgAnswer:
		return b.answered(&c)
	case msgSay:
		b.told(say)
		return nil
	case msgBye:
		select {
		case <-time.After(flushFor):
		case <-b.link.ended:
		}
		return errBye
	case msgDone, msgPush, msgDisconnect:
	default:
		return errMalformed
	}
	var id core.ClientID
	if unsigned(&c, &id); c.err != nil {
		return c.err
	}
	of := b.client(id)
	if of == nil {
		return nil // it has been closed; the leader will know
	}
	switch kind {
	case msgDone:
		return of.answered(c.buf)
	case msgPush:
		if len(c.buf) > 0 {
			of.mu.Lock()
			of.pushed = append(of.pushed, c.buf)
			of.mu.Unlock()
		}
		of.wake()
	case msgDisconnect:
		if of.close != nil {
			of.close()
		}
	}
	return nil
}

// answered is the answer to what the client asked last. What was pushed before goes before it.
func (c *client) answered(list []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked.Load() == 0 || c.answer != nil {
		return errMalformed
	}
	c.answer, c.before, c.pushed = list, c.pushed, nil
	c.done.Set()
	return nil
}
