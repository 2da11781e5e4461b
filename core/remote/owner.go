package remote

import (
	"bytes"
	"encoding/binary"
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

// asked is called for a question.
func (l *served) asked(c *coder) error {
	number := c.uvarint(0)
	if c.err != nil {
		return c.err
	}
	l.server.options.Owner.Asked(l.owned, bytes.Clone(c.buf), func(answer []byte) {
		l.send(msgAnswer, append(binary.AppendUvarint(nil, number), answer...))
	})
	return nil
}

// questions are those of a node that have no answer yet.
type questions struct {
	mu   sync.Mutex // guards the fields below
	last uint64
	open map[uint64]chan<- []byte
}

// add numbers a question, whose answer will be sent to the channel.
func (q *questions) add() (number uint64, answer <-chan []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = make(map[uint64]chan<- []byte)
	}
	q.last++
	to := make(chan []byte, 1)
	q.open[q.last] = to
	return q.last, to
}

// take removes a question; nil: there is none.
func (q *questions) take(number uint64) chan<- []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	to := q.open[number]
	delete(q.open, number)
	return to
}

// Ask asks the owner of the leader's Server and waits for its answer. The error is the reason for the end of the link;
// with OneLink, the connections of all clients are closed by then. It must not be called by Told.
func (b *Broker) Ask(question []byte) ([]byte, error) {
	up := b.current.Load()
	if up == nil {
		return nil, errClosed
	}
	number, answer := b.questions.add()
	up.link.send(msgAsk, append(binary.AppendUvarint(nil, number), question...))
	select {
	case a := <-answer:
		return a, nil
	case <-up.gone:
		b.questions.take(number)
		return nil, up.Reason()
	}
}

// ownerAnswered handles the answer to a question.
func (b *Broker) ownerAnswered(c *coder) error {
	number := c.uvarint(0)
	if c.err != nil {
		return c.err
	}
	to := b.questions.take(number)
	if to == nil {
		return errMalformed
	}
	to <- c.buf
	return nil
}
