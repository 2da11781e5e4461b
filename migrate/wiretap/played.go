package wiretap

import (
	"bytes"
	"net"
	"sync"
	"time"

	"broker/migrate/wire"
)

// sendWithin limits the time in which the second server must read a request.
const sendWithin = 2 * time.Second

// played is a client's connection to the second server. The player sends; a goroutine reads the replies.
type played struct {
	c    *Comparer
	conn net.Conn
	line int

	ask, answer []byte // the barrier

	mu   sync.Mutex // guards the fields below
	sent []*exchange
	gone bool

	reading sync.WaitGroup
}

func newPlayed(c *Comparer, conn net.Conn, line int) *played {
	p := &played{c: c, conn: conn, line: line}
	p.ask, p.answer = c.p.barrier()
	p.reading.Go(p.read)
	return p
}

// send sends a request. It returns a channel that is closed when the second server has handled the request; nil if that
// cannot be determined.
func (p *played) send(x *exchange, raw []byte) <-chan struct{} {
	wait := x
	p.mu.Lock()
	switch {
	case p.gone:
		p.mu.Unlock()
		if !x.mute {
			p.c.verdicts.broker(x, closedReply)
		}
		return nil
	case x.req.kind == silent && p.ask == nil:
		wait = nil
	case x.req.kind == silent:
		wait = &exchange{barrier: true, done: make(chan struct{})}
		p.sent = append(p.sent, wait)
		raw = append(bytes.Clone(raw), p.ask...)
	default:
		p.sent = append(p.sent, x)
	}
	p.mu.Unlock()
	_ = p.conn.SetWriteDeadline(time.Now().Add(sendWithin)) // fails on a closed connection only
	if _, err := p.conn.Write(raw); err != nil {
		_ = p.conn.Close() // the reader settles the open exchanges
	}
	if wait == nil {
		return nil
	}
	return wait.done
}

// closedReply represents the end of a connection.
var closedReply = &reply{raw: []byte("(connection closed)")}

// read takes replies until the connection ends.
func (p *played) read() {
	defer p.ended()
	var in []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := p.conn.Read(buf)
		in = append(in, buf[:n]...)
		for len(in) > 0 {
			used, ok := p.take(in)
			if !ok {
				return
			}
			if used == 0 {
				break
			}
			in = in[used:]
		}
		if err != nil || len(in) > wire.MaxMessage {
			return
		}
	}
}

// take handles the first reply of in.
func (p *played) take(in []byte) (used int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var head *exchange
	var asked *request
	if len(p.sent) > 0 {
		head = p.sent[0]
		asked = &head.req
	}
	r, n, err := p.c.p.reply(in, asked)
	if err != nil || n == 0 {
		return 0, err == nil
	}
	switch {
	case r.skip:
	case r.push:
		r.raw = bytes.Clone(r.raw)
		p.c.verdicts.push(p.line, &r, false)
	case head == nil:
	case head.barrier && !bytes.Equal(r.raw, p.answer): // an error for a request that normally has no reply
	default:
		p.sent = p.sent[1:]
		if !head.barrier && !head.mute {
			r.raw = bytes.Clone(r.raw)
			p.c.verdicts.broker(head, &r)
		}
		close(head.done)
	}
	return n, true
}

// ended settles the open exchanges.
func (p *played) ended() {
	_ = p.conn.Close() // nothing more is read
	p.mu.Lock()
	sent, lost := p.sent, !p.gone
	p.sent, p.gone = nil, true
	p.mu.Unlock()
	if lost {
		p.c.lookAtSecond()
	}
	for _, x := range sent {
		if !x.barrier && !x.mute {
			p.c.verdicts.broker(x, closedReply)
		}
		close(x.done)
	}
}

// close ends the connection. Open requests get no reply.
func (p *played) close() {
	p.mu.Lock()
	p.sent, p.gone = nil, true
	p.mu.Unlock()
	_ = p.conn.Close() // ends the reader
	p.reading.Wait()
}
