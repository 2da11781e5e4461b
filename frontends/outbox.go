package frontends

import "broker/core"

// Outbox collects the replies of a connection in order. It holds each reply until the commit that it needs is durable.
//
//	buf  ├── may leave ──┼── held: commit 7 ──┼── behind it ──┼── held: commit 9 ──┤
//	     sent            gate[0].start        gate[0].end
//
// It is used on the connection's loop only.
type Outbox struct {
	buf   []byte
	gates []gate
	next  int // first gate not yet passed
	late  int // bytes that Sent has dropped and the socket has not taken yet
	sent  uint64
}

// gate holds buf[start:end] back until commit.
type gate struct {
	start, end int
	commit     core.Commit
}

// Buf is the space to append a reply to; give the result to Put (or Hold).
func (o *Outbox) Buf() []byte { return o.buf }

// Put takes back the buffer that Buf returned, with a reply appended. The reply waits for commit; zero: it waits for
// none.
func (o *Outbox) Put(b []byte, commit core.Commit) {
	start := len(o.buf)
	o.buf = b
	if commit == 0 || len(b) == start {
		return
	}
	o.gates = append(o.gates, gate{start: start, end: len(b), commit: commit})
}

// Write appends p, which needs no commit.
func (o *Outbox) Write(p []byte) { o.buf = append(o.buf, p...) }

// WriteString appends s, which needs no commit.
func (o *Outbox) WriteString(s string) { o.buf = append(o.buf, s...) }

// Len is the number of bytes that the loop has not taken yet.
func (o *Outbox) Len() int { return len(o.buf) }

// Late sets the number of bytes that the loop has taken with Sent but the socket has not accepted yet.
func (o *Outbox) Late(n int) { o.late = n }

// Unsent is the number of bytes that the socket has not accepted. It may be slightly too high.
func (o *Outbox) Unsent() int { return len(o.buf) + o.late }

// Written is the number of bytes that were ever written to the outbox, sent or not.
func (o *Outbox) Written() uint64 { return o.sent + uint64(len(o.buf)) }

// Held is the number of replies that wait for a commit.
func (o *Outbox) Held() int { return len(o.gates) - o.next }

// Due reports whether the first held reply may be sent now that committed is durable.
func (o *Outbox) Due(committed core.Commit) bool {
	return o.next < len(o.gates) && o.gates[o.next].commit <= committed
}

// Sendable returns the first bytes, as far as they may be sent when committed is durable. They stay valid until the
// next write. Call Sent with the number of bytes taken.
func (o *Outbox) Sendable(committed core.Commit) []byte {
	for o.next < len(o.gates) && o.gates[o.next].commit <= committed {
		o.next++
	}
	if o.next == len(o.gates) {
		return o.buf
	}
	return o.buf[:o.gates[o.next].start]
}

// Durable is Sendable up to the last reply that has waited for a commit which is durable now. What follows may have
// been decided later.
func (o *Outbox) Durable(committed core.Commit) []byte {
	p := o.Sendable(committed)
	if o.next == 0 {
		return nil
	}
	return p[:o.gates[o.next-1].end]
}

// Sent drops the first n bytes. The loop has taken them and sends them.
func (o *Outbox) Sent(n int) {
	o.sent += uint64(n)
	if n == len(o.buf) && o.next == len(o.gates) {
		o.buf, o.gates, o.next = o.shrunk(), o.gates[:0], 0
		return
	}
	o.buf = o.buf[:copy(o.buf, o.buf[n:])]
	o.gates = o.gates[:copy(o.gates, o.gates[o.next:])]
	o.next = 0
	for i := range o.gates {
		o.gates[i].start -= n
		o.gates[i].end -= n
	}
}

// maxIdle is the size of the buffer that an empty outbox keeps.
const maxIdle = 64 << 10

func (o *Outbox) shrunk() []byte {
	if cap(o.buf) > maxIdle {
		return nil
	}
	return o.buf[:0]
}

// Refuse replaces every held reply by refusal and releases all of them.
func (o *Outbox) Refuse(refusal []byte) {
	held := o.gates[o.next:]
	if len(held) == 0 {
		return
	}
	buf := make([]byte, 0, len(o.buf))
	at := 0
	for _, g := range held {
		buf = append(append(buf, o.buf[at:g.start]...), refusal...)
		at = g.end
	}
	buf = append(buf, o.buf[at:]...)
	o.sent += uint64(len(o.buf)) - uint64(len(buf)) // modulo 2⁶⁴, so that Written does not change
	o.buf, o.gates, o.next = buf, o.gates[:0], 0
}
