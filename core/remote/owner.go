package remote

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"
)

// Owner is what a Server belongs to. Its methods are called on the goroutine of a link, one at a time for each node,
// and must not block. The bytes are theirs.
type Owner interface {
	// Asked is called for a question of a node. It calls answer once, at any time and from any goroutine.
	Asked(n *Node, question []byte, answer func([]byte))

	// Told is called for what a node tells.
	Told(n *Node, say []byte)

	// Left is called once when the link to a node has ended, after its clients are closed.
	Left(n *Node)
}

// Node is a node that follows, for the owner of the leader's Server.
type Node struct{ link *served }

// Tell sends bytes to the node. They may be lost with the link. Any goroutine may call it.
func (n *Node) Tell(say []byte) { n.link.send(msgSay, say) }

// asked is called for a question. Nobody waits for the answer to one without a number.
func (l *served) asked(c *coder) error {
	number := c.uvarint(0)
	if c.err != nil {
		return c.err
	}
	l.server.options.Owner.Asked(l.owned, bytes.Clone(c.buf), func(answer []byte) {
		if number != 0 {
			l.send(msgAnswer, append(binary.AppendUvarint(nil, number), answer...))
		}
	})
	return nil
}

// errNoLeader: there has been no leader for awayFor, or the broker is shut.
var errNoLeader = errors.New("no leader answers")

// question is one that has no answer yet.
type question struct {
	say    []byte
	once   bool                // it ends with the link over which it was sent
	up     *Uplink             // over which it was sent last; nil: none
	answer chan []byte         // closed without an answer if there will be none
	handle func(answer []byte) // of a registration, in place of answer
}

// questions are those of a node that have no answer yet.
type questions struct {
	mu      sync.Mutex // guards the fields below
	last    uint64
	open    map[uint64]*question
	up      *Uplink // takes questions; nil: they wait for the next link
	refused bool    // there is no leader to wait for
}

// add adds a question, and sends it if there is a link.
func (q *questions) add(x *question) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refused {
		return errNoLeader
	}
	q.addLocked(x, q.up)
	return nil
}

func (q *questions) addLocked(x *question, up *Uplink) {
	if q.open == nil {
		q.open = make(map[uint64]*question)
	}
	q.last++
	q.open[q.last] = x
	if up != nil {
		x.send(up, q.last)
	}
}

func (x *question) send(up *Uplink, number uint64) {
	x.up = up
	up.link.send(msgAsk, append(binary.AppendUvarint(nil, number), x.say...))
}

// take removes a question; nil: there is none.
func (q *questions) take(number uint64) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	x := q.open[number]
	delete(q.open, number)
	return x
}

// begin makes a link take questions: what the owner registers first, then those without an answer, in their order.
func (q *questions) begin(up *Uplink, first []*question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if up.link.reason() != nil {
		return // end has been called, or will find nothing
	}
	again := slices.Sorted(maps.Keys(q.open))
	for _, x := range first {
		q.addLocked(x, up)
	}
	for _, number := range again {
		q.open[number].send(up, number)
	}
	q.up, q.refused = up, false
}

// end ends what can not be asked again when a link has ended.
func (q *questions) end(up *Uplink) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.up == up {
		q.up = nil
	}
	for number, x := range q.open {
		switch {
		case x.up != up:
		case x.handle != nil:
			delete(q.open, number)
		case x.once:
			delete(q.open, number)
			close(x.answer)
		}
	}
}

// refuse ends all, and refuses others until there is another link.
func (q *questions) refuse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refused = true
	for _, x := range q.open {
		if x.handle == nil {
			close(x.answer)
		}
	}
	clear(q.open)
}

// Ask asks the owner of the leader's Server and waits for its answer. If the leader changes it asks the next one again,
// behind what BrokerOptions.Register asks: twice must be as once. The error says that no leader answers; the clients
// are dropped by then. It must not be called by Told or Register.
func (b *Broker) Ask(say []byte) ([]byte, error) { return b.await(&question{say: say}) }

// AskOnce is Ask for what must not be asked twice: the error then means that nobody knows the answer.
func (b *Broker) AskOnce(say []byte) ([]byte, error) { return b.await(&question{say: say, once: true}) }

func (b *Broker) await(x *question) ([]byte, error) {
	x.answer = make(chan []byte, 1)
	if err := b.questions.add(x); err != nil {
		return nil, err
	}
	answer, is := <-x.answer
	if !is {
		return nil, errNoLeader
	}
	return answer, nil
}

// Inform asks without waiting for an answer. The question may be lost with the link.
func (b *Broker) Inform(say []byte) {
	if up := b.current.Load(); up != nil {
		up.link.send(msgAsk, append([]byte{0}, say...))
	}
}

// InUse reports whether there are clients, leases or questions that need a leader.
func (b *Broker) InUse() bool {
	if b.Clients() > 0 || b.keepsLeases() {
		return true
	}
	b.questions.mu.Lock()
	defer b.questions.mu.Unlock()
	return len(b.questions.open) > 0
}

// ownerAnswered handles the answer to a question.
func (u *Uplink) ownerAnswered(c *coder) error {
	number := c.uvarint(0)
	if c.err != nil {
		return c.err
	}
	x := u.broker.questions.take(number)
	switch {
	case x == nil: // nobody waits for it any more
	case x.handle != nil:
		x.handle(c.buf)
		u.settled()
	default:
		x.answer <- c.buf
	}
	return nil
}

// askFirst asks what the owner registers with the leader, and then what has no answer yet.
func (u *Uplink) askFirst() {
	var first []*question
	if register := u.broker.options.Register; register != nil {
		register(func(say []byte, handle func([]byte)) { first = append(first, &question{say: say, handle: handle}) })
	}
	u.pending.Add(int64(len(first)))
	u.broker.questions.begin(u, first)
}
