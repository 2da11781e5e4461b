package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"broker/core"
	"broker/core/notify"
)

// Uplink is a link of a Broker to a leader.
type Uplink struct {
	broker *Broker
	link   *link
	note   []byte
	past   history
	same   bool // the leader is that of the link before

	live bool // operations are sent; guarded by the broker's mu
	// shift is what clients see of a commit beyond what the leader counts: the leaders count on from each other, and
	// one that was lost has a number that the next leader uses again.
	shift uint64

	commits  sync.Mutex  // guards the fields below
	told     core.Commit // the newest commit, as the leader counts
	needed   core.Commit // clients are told of commits from this one on
	thawed   bool        // needed is known
	beats    atomic.Uint64
	pending  atomic.Int64  // answers to what the broker itself has asked
	depends  atomic.Uint64 // newest commit of what it has asked again
	progress notify.Signal
	begun    atomic.Bool // what the end of the leader before has left is sorted
	serves   atomic.Bool // the leader takes operations

	ready chan struct{} // closed when clients are served again
	gone  chan struct{} // closed when the link has ended
	parts sync.WaitGroup
}

// history says which changes of earlier leaders a leader has.
type history struct {
	term     uint64 // of the leader
	before   uint64 // number of the last entry of earlier leaders
	lastTerm uint64 // its term
	applied  uint64 // number of the node's last message with changes that is in the history
}

func (h *history) code(c *coder) {
	unsigned(c, &h.term)
	unsigned(c, &h.before)
	unsigned(c, &h.lastTerm)
	unsigned(c, &h.applied)
}

// errHistory: the leader has not said which history it has.
var errHistory = errors.New("the leader says nothing about its history")

// Dial links the broker to a leader over a connection, and takes ownership of it. The link before has ended. It waits
// for the leader's hello until the deadline of the connection. A *FormatError says that the leader speaks another
// format. The clients continue soon after: see Ready.
func (b *Broker) Dial(conn net.Conn) (*Uplink, error) {
	u := &Uplink{
		broker: b, progress: notify.NewSignal(), ready: make(chan struct{}), gone: make(chan struct{}),
	}
	if before := b.current.Load(); before != nil {
		before.Hangup()
	}
	me := nodeHello{node: b.options.Node, incarnation: b.incarnation, number: b.number, wakes: true}
	err := writeHello(conn, me.encode())
	if err == nil {
		u.note, err = readHello(conn)
	}
	u.link = newLink(conn, 0, func([]byte) {})
	in := newReader(u.link)
	if err == nil {
		err = u.readHistory(in)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	u.beats.Store(1)
	timed := make(chan struct{})
	u.parts.Go(u.link.write) // these end with the link
	u.parts.Go(func() { u.read(in, sync.OnceFunc(func() { close(timed) })) })
	u.parts.Go(func() { u.link.beat(u.beat) })
	u.parts.Go(u.finish)
	u.askTime()
	select {
	case <-timed:
	case <-u.link.ended:
		u.parts.Wait()
		return nil, u.link.reason()
	}
	u.parts.Go(u.takeOver)
	return u, nil
}

// readHistory reads the leader's first message.
func (u *Uplink) readHistory(in *reader) error {
	kind, say, err := in.next(func(byte) bool { return true })
	for err == nil && kind == msgCommit {
		kind, say, err = in.next(func(byte) bool { return true })
	}
	if err == nil && kind != msgHistory {
		err = errHistory
	}
	if err != nil {
		return err
	}
	c := coder{buf: say, reading: true}
	u.past.code(&c)
	return c.err
}

// nodeHello is what a node says of itself.
type nodeHello struct {
	node                string
	incarnation, number uint64 // see Server
	wakes               bool   // it wakes the clients that wait for a commit; nodes of earlier builds do not say so
}

func (h *nodeHello) code(c *coder) {
	c.text(&h.node)
	unsigned(c, &h.incarnation)
	unsigned(c, &h.number)
	if !c.reading || len(c.buf) > 0 {
		c.flags(&h.wakes)
	}
}

func (h *nodeHello) encode() []byte {
	var c coder
	h.code(&c)
	return c.buf
}

// Note is what the leader has said in its hello.
func (u *Uplink) Note() []byte { return u.note }

// Ready is closed when clients are served.
func (u *Uplink) Ready() <-chan struct{} { return u.ready }

// Gone is closed when the link has ended.
func (u *Uplink) Gone() <-chan struct{} { return u.gone }

// Reason is why the link has ended.
func (u *Uplink) Reason() error { return u.link.reason() }

// Hangup ends the link, and returns when no goroutine of it is left. The clients wait for the next link.
func (u *Uplink) Hangup() {
	u.link.end(errClosed)
	u.parts.Wait()
}

// finish makes clients wait once the link has ended, for awayFor.
func (u *Uplink) finish() {
	<-u.link.ended
	b := u.broker
	b.mu.Lock()
	u.live = false
	if b.away == nil && !b.closed.Load() {
		b.away = time.AfterFunc(awayFor, b.dropAll)
	}
	b.mu.Unlock()
	b.questions.end(u)
	close(u.gone)
}

// open opens a client at the leader.
func (u *Uplink) open(c *client) {
	w, closes := coder{}, c.options.Close != nil
	unsigned(&w, &c.id)
	clientOptions(&w, &c.options, &closes)
	u.link.send(msgOpen, w.buf)
	c.up = u
}

// ask sends what a client asks. The client's lock is held.
func (u *Uplink) ask(c *client) {
	c.asked.Store(u.beats.Load())
	c.number, c.trace = u.number(c.say.buf), untraced
}

// number sends operations and returns the number of their message.
func (u *Uplink) number(say []byte) uint64 {
	b := u.broker
	b.asking.Lock()
	defer b.asking.Unlock()
	b.number++
	u.link.send(msgDo, say)
	return b.number
}

// beat asks for the leader's time, and gives the link up if an operation has no answer.
func (u *Uplink) beat() {
	now := u.beats.Add(1)
	b := u.broker
	b.mu.RLock()
	for _, c := range b.clients {
		if asked := c.asked.Load(); asked != 0 && now > asked && now-asked > answerBeats {
			u.link.end(errUnanswered)
			break
		}
	}
	b.mu.RUnlock()
	u.askTime()
}

func (u *Uplink) askTime() {
	_, now := u.broker.options.Clock.Read()
	u.link.send(msgBeat, binary.AppendUvarint(nil, uint64(now)))
}

// read is the goroutine that handles what the leader says.
func (u *Uplink) read(in *reader, timed func()) {
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
			err = u.handle(kind, say, timed)
		}
		if err != nil {
			u.link.end(err)
			return
		}
	}
}

func (u *Uplink) handle(kind byte, say []byte, timed func()) error {
	b := u.broker
	c := coder{buf: say, reading: true}
	switch kind {
	case msgCommit:
		if len(say) != 8 {
			return errMalformed
		}
		u.committed(core.Commit(binary.BigEndian.Uint64(say)))
		return nil
	case msgTime:
		sent, at := c.uvarint(0), core.Instant(0)
		signed(&c, &at)
		if c.err == nil {
			_, now := b.options.Clock.Read()
			b.time.learn(time.Duration(sent), now, at)
			timed()
		}
		return c.err
	case msgServe:
		u.serves.Store(true)
		u.progress.Set()
		return nil
	case msgAnswer:
		return u.ownerAnswered(&c)
	case msgSay:
		b.options.Told(say)
		return nil
	case msgBye:
		return errBye
	case msgDone, msgPush, msgDisconnect:
	default:
		return fmt.Errorf("%w: of kind %d", errMalformed, kind)
	}
	var id core.ClientID
	if unsigned(&c, &id); c.err != nil {
		return c.err
	}
	b.mu.RLock()
	of := b.clients[id]
	b.mu.RUnlock()
	if id == 0 {
		of = &b.left
	}
	if of == nil {
		return nil // it has been closed; the leader will know
	}
	switch kind {
	case msgDone:
		return u.answered(of, c.buf)
	case msgPush:
		if len(c.buf) > 0 {
			of.mu.Lock()
			of.pushed = append(of.pushed, u.list(c.buf))
			of.mu.Unlock()
		}
		of.options.Wake()
	case msgDisconnect:
		if of.options.Close != nil {
			of.options.Close()
		}
	}
	return nil
}

// list is a list of replies that the leader has sent. The goroutine of read calls it.
func (u *Uplink) list(replies []byte) list { return list{replies, u.shift, u.told} }

// answered is the answer to what a client has asked, or to what the broker has asked for it. What was pushed to the
// client before goes before its answer.
func (u *Uplink) answered(c *client, say []byte) error {
	c.mu.Lock()
	if len(c.expects) > 0 {
		x := c.expects[0]
		c.expects = c.expects[1:]
		after := x.check(u.list(say))
		c.mu.Unlock()
		if after != nil {
			after() // first: once all is settled, clients are told of commits
		}
		u.settled()
		return nil
	}
	defer c.mu.Unlock()
	if c.gone {
		return nil
	}
	if c.say == nil || c.number == 0 || c.answer.replies != nil {
		return errMalformed
	}
	c.answer, c.before, c.pushed = u.list(say), c.pushed, nil
	c.done.Set()
	return nil
}

// committed notes a commit of the leader.
func (u *Uplink) committed(commit core.Commit) {
	if u.begun.Load() {
		u.broker.certain(commit)
	}
	u.commits.Lock()
	was := u.told
	u.told = max(u.told, commit)
	shows := u.thawed && u.told >= u.needed
	if shows {
		u.show()
	}
	thaws := shows && was < u.needed
	u.commits.Unlock()
	switch {
	case thaws:
		u.wakeAll()
	case shows && was < commit:
		u.broker.wakeWaiting()
	}
}

// show tells clients of the newest commit.
func (u *Uplink) show() { u.broker.committed.Store(uint64(u.told) + u.shift) }

// thaw tells clients of commits from one on: replies that wait for commits of the leader before depend on it.
func (u *Uplink) thaw(needed core.Commit) {
	u.commits.Lock()
	u.needed, u.thawed = needed, true
	now := u.told >= needed
	if now {
		u.show()
	}
	u.commits.Unlock()
	if now {
		u.wakeAll()
	}
}

// wakeAll wakes all clients: replies of any may have waited.
func (u *Uplink) wakeAll() {
	b := u.broker
	b.mu.RLock()
	all := b.sorted()
	b.mu.RUnlock()
	for _, c := range all {
		c.options.Wake()
	}
}
