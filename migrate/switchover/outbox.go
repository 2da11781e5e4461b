package switchover

import (
	"net"
	"sync"
	"time"
)

// maxOutbox is the number of waiting bytes above which wait blocks.
const maxOutbox = 1 << 20

// keepOutbox is the size of the buffer that an idle connection keeps.
const keepOutbox = 64 << 10

// outbox holds the output of a connection. A goroutine writes it, so that no caller waits for a slow reader while
// holding a lock.
type outbox struct {
	conn   net.Conn
	within time.Duration // timeout of a write; zero: none

	mu    sync.Mutex // guards the fields below
	cond  sync.Cond
	bytes []byte
	busy  bool // a write is in progress
	last  bool // no more output follows
	ended bool // the connection is closed
}

func newOutbox(conn net.Conn, within time.Duration) *outbox {
	o := &outbox{conn: conn, within: within}
	o.cond.L = &o.mu
	return o
}

// put adds output. It never waits.
func (o *outbox) put(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended && !o.last {
		o.bytes = append(o.bytes, b...)
		o.cond.Broadcast()
	}
}

// wait returns when there is room.
func (o *outbox) wait() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.bytes) > maxOutbox && !o.ended {
		o.cond.Wait()
	}
}

// finish ends run after all output is written, waits for that, and closes the sending side.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = true
	o.cond.Broadcast()
	for (len(o.bytes) > 0 || o.busy) && !o.ended {
		o.cond.Wait()
	}
}

// close ends run and the connection at once.
func (o *outbox) close() {
	_ = o.conn.Close() // may be closed
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended, o.bytes = true, nil
	o.cond.Broadcast()
}

// run writes until the end.
func (o *outbox) run() {
	var spare []byte
	for {
		o.mu.Lock()
		for len(o.bytes) == 0 && !o.last && !o.ended {
			o.cond.Wait()
		}
		out := o.bytes
		if o.ended || len(out) == 0 {
			o.mu.Unlock()
			break
		}
		if cap(spare) > keepOutbox {
			spare = nil
		}
		o.bytes, o.busy = spare[:0], true
		o.mu.Unlock()
		if o.within > 0 {
			_ = o.conn.SetWriteDeadline(time.Now().Add(o.within)) // fails on a closed connection only
		}
		_, err := o.conn.Write(out)
		o.mu.Lock()
		o.busy = false
		o.cond.Broadcast()
		o.mu.Unlock()
		if err != nil {
			o.close() // the reader of the connection notices
			return
		}
		spare = out
	}
	closeWrite(o.conn)
}
