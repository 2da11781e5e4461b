package wiretap

import (
	"bytes"
	"sync"

	"broker/migrate/wire"
)

// exchange is a request with both replies.
type exchange struct {
	line    int
	req     request
	bytes   int
	sent    bool          // passed to the player; guarded by the line
	done    chan struct{} // closed once the second server has replied
	barrier bool          // not a client's request
	mute    bool          // its reply is not compared
	probe   bool          // the comparison asks for a client that waits for a job
	late    bool          // guarded by verdicts: it names a job that the other server delivered before

	up, down *reply // of the first and of the second server; guarded by verdicts once sent
	settled  bool   // guarded in the same way
}

func newExchange(line int, r request) *exchange {
	r.raw, r.play, r.poll = bytes.Clone(r.raw), bytes.Clone(r.play), bytes.Clone(r.poll)
	return &exchange{line: line, req: r, bytes: len(r.raw), done: make(chan struct{})}
}

// line is the comparison's view of a client's connection. The two proxy goroutines of the connection call it.
type line struct {
	number int
	c      *Comparer
	gaps   int // Comparer.gaps when it was opened

	mu      sync.Mutex // guards the fields below
	in, out []byte     // bytes not cut into messages yet
	waiting []*exchange
	states  stateRequests
	version int // of states
	lost    bool
}

// client receives bytes from the client.
func (l *line) client(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in = l.append(l.in, p)
	for len(l.in) > 0 && !l.lost {
		r, n, err := l.c.p.request(l.in)
		if err != nil || n == 0 && len(l.in) > wire.MaxMessage {
			l.lose()
			return
		}
		if n == 0 {
			break
		}
		if r.creating() {
			l.c.early.submitting.Add(1)
		}
		x := newExchange(l.number, r)
		l.waiting = append(l.waiting, x)
		l.in = l.cut(l.in, n)
		if r.state != "" {
			l.setState(x.req)
		}
		if r.kind == takes {
			l.c.verdicts.asks(l.number, &x.req)
		}
	}
	l.advance()
}

// setState keeps a request that sets the connection's state.
func (l *line) setState(r request) {
	if r.everyone {
		l.c.mu.Lock()
		defer l.c.mu.Unlock()
		l.c.shared.add(r)
		return
	}
	l.states.add(r)
	l.version++
}

// server receives bytes from the server.
func (l *line) server(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = l.append(l.out, p)
	for len(l.out) > 0 && !l.lost {
		var asked *request
		if len(l.waiting) > 0 {
			asked = &l.waiting[0].req
		}
		p, n, err := l.c.p.reply(l.out, asked)
		if err != nil || n == 0 && len(l.out) > wire.MaxMessage {
			l.lose()
			return
		}
		if n == 0 {
			return
		}
		p.raw = bytes.Clone(p.raw)
		l.out = l.cut(l.out, n)
		switch {
		case p.push && !p.skip:
			l.c.enqueue(task{line: l.number, push: &p})
		case p.push || len(l.waiting) == 0:
		default:
			x := l.waiting[0]
			if x.sent {
				l.c.verdicts.server(x, &p)
			} else {
				x.up = &p
			}
			l.play(x)
			l.waiting = l.waiting[1:]
			l.advance()
		}
	}
}

// advance plays requests that need not wait for the server's reply.
func (l *line) advance() {
	for len(l.waiting) > 0 {
		x := l.waiting[0]
		switch {
		case x.req.kind == silent:
			l.play(x)
			l.waiting = l.waiting[1:]
		case x.req.kind == waits && !x.sent:
			l.play(x)
			return
		default:
			return
		}
	}
}

// play passes an exchange to the player, unless it has it already.
func (l *line) play(x *exchange) {
	if !x.sent {
		x.sent = true
		l.c.enqueue(task{line: l.number, x: x})
	}
}

// lose ends the comparison of a connection whose bytes cannot be parsed.
func (l *line) lose() {
	l.lost = true
	l.giveUp()
	l.in, l.out = l.cut(l.in, len(l.in)), l.cut(l.out, len(l.out))
	l.c.verdicts.unknown("other bytes", "bytes that are not of the protocol")
}

// giveUp counts the requests that will get no reply.
func (l *line) giveUp() {
	for _, x := range l.waiting {
		if !x.sent {
			l.c.verdicts.unknown(x.req.verb, whyLeft)
			if x.req.creating() {
				l.c.early.submitting.Add(-1)
			}
		}
	}
	l.waiting = nil
}

// close ends the line.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in, l.out, l.lost = l.cut(l.in, len(l.in)), l.cut(l.out, len(l.out)), true
	l.giveUp()
	l.c.enqueue(task{line: l.number, closed: true})
}

// append stores bytes and cut drops them. Both count the memory.
func (l *line) append(b, p []byte) []byte {
	if l.lost {
		return nil
	}
	l.c.hold(len(p))
	return append(b, p...)
}

func (l *line) cut(b []byte, n int) []byte {
	l.c.release(n)
	if n == len(b) {
		return nil
	}
	return b[n:]
}
