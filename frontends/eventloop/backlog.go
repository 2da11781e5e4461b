package eventloop

import (
	"io"
	"sync"
)

// writePiece limits one write, in bytes, so that the size of a long backlog decreases steadily.
const writePiece = 256 << 10

// backlog writes the output that a socket did not take at once. Its goroutine runs only while there is output: it ends
// when all is written, at the first error, or when the writer is closed.
type backlog struct {
	mu     sync.Mutex // guards the fields below
	queue  []byte
	size   int // bytes not written: in the queue or held by the goroutine; kept after a failure
	failed bool
	w      io.WriteCloser // writer of the running goroutine; nil: none is running
}

// append queues a copy of p if the goroutine is running; otherwise it does nothing and reports false.
func (b *backlog) append(p []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.w == nil {
		return false
	}
	b.queue = append(b.queue, p...)
	b.size += len(p)
	return true
}

// start queues a copy of p and starts the goroutine, which must not be running. The goroutine owns w; when it ends, it
// closes w and calls done.
func (b *backlog) start(p []byte, w io.WriteCloser, done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue, b.size, b.w = append(b.queue, p...), len(p), w
	go b.drain(w, done)
}

// state reports how many bytes are not written yet and whether writing has failed.
func (b *backlog) state() (pending int, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size, b.failed
}

// abort discards the queue.
func (b *backlog) abort() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.w != nil {
		_ = b.w.Close() // unblocks the goroutine, which closes it again
	}
}

// drain is the goroutine's body.
func (b *backlog) drain(w io.WriteCloser, done func()) {
	defer done()
	defer func() { _ = w.Close() }() // everything is written, or nothing can be
	var spare []byte
	for {
		p, more := b.take(spare)
		if !more {
			return
		}
		spare = p
		for len(p) > 0 {
			n, err := w.Write(p[:min(len(p), writePiece)])
			p = p[n:]
			if b.wrote(n, err) {
				return
			}
		}
	}
}

// take returns the queued bytes. If the queue is empty, the goroutine must end. take decides that under the lock, so
// that no byte can be queued afterwards.
func (b *backlog) take(spare []byte) ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.w, b.queue = nil, nil
		return nil, false
	}
	p := b.queue
	b.queue = spare[:0]
	return p, true
}

// wrote updates the size and reports whether writing has failed.
func (b *backlog) wrote(n int, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size -= n
	if err != nil {
		b.failed, b.w, b.queue = true, nil, nil
	}
	return err != nil
}
