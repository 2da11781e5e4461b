package switchover

import (
	"net"
	"sync"
	"time"
)

// maxOutbox is how many bytes may wait for a connection before those who add to them wait.
const maxOutbox = 1 << 20

// keepOutbox is how many bytes of memory stay with a connection that has nothing to write.
const keepOutbox = 64 << 10

// outbox holds the bytes on their way to a connection. A goroutine writes them, so that nobody waits for a slow reader while it holds
// a lock.
type outbox struct {
	conn   net.Conn
	within time.Duration // bounds a write; zero: no bound

	mu    sync.Mutex // guards what follows
	cond  sync.Cond
	bytes []byte
	busy  bool // some are being written
	last  bool // nothing more comes
	ended bool // the connection takes no more
}

func newOutbox(conn net.Conn, within time.Duration) *outbox {
	o := &outbox{conn: conn, within: within}
	o.cond.L = &o.mu
	return o
}

// put adds bytes. It never waits.
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

// finish lets run end once all is written, and waits for that. The receiver learns that no more comes.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = true
	o.cond.Broadcast()
	for (len(o.bytes) > 0 || o.busy) && !o.ended {
		o.cond.Wait()
	}
}

// close ends run at once, and the connection.
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
			o.close() // the reader of the connection learns it
			return
		}
		spare = out
	}
	if half, ok := o.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // fails on a closed connection
	}
}
