package engine

import (
	"sync"

	"broker/core"
)

// maxReaders limits how many leased jobs are read at the same time. A few readers get more from a disk than one reader;
// more readers would only delay commits.
const maxReaders = 4

// readers read the bodies of leased jobs for clients that accept a delay (core.Lease.Late), so that event loops do not
// wait for the disk. They start when there are jobs to read and end when there are none.
type readers struct {
	mu      sync.Mutex // guards queue, running and closed
	queue   []lateJob
	running int
	closed  bool
	all     sync.WaitGroup
}

// lateJob is the job of a Reading reply.
type lateJob struct {
	client core.ClientID
	reply  core.Reply
	queue  string // of the job
}

// readLate queues the job of a Reading reply; false: the engine is being closed.
func (e *Engine) readLate(id core.ClientID, r *core.Reply, queue string) bool {
	l := lateJob{client: id, reply: *r, queue: queue}
	l.reply.Kind = core.Assigned
	q := &e.readers
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.queue = append(q.queue, l)
	if q.running < maxReaders {
		q.running++
		q.all.Go(e.readLoop) // ends when the queue is empty; Shutdown waits for it
	}
	return true
}

func (e *Engine) readLoop() {
	q := &e.readers
	for {
		q.mu.Lock()
		if len(q.queue) == 0 {
			q.running--
			q.mu.Unlock()
			return
		}
		l := q.queue[0]
		q.queue[0] = lateJob{}
		if q.queue = q.queue[1:]; len(q.queue) == 0 {
			q.queue = nil
		}
		q.mu.Unlock()
		e.deliver(&l)
		e.refill(l.reply.Seq)
	}
}

// deliver reads a job and passes it to its client if the client still waits for it.
func (e *Engine) deliver(l *lateJob) {
	r := &l.reply
	if err := e.readLeased(r, l.queue); err != nil {
		*r = e.lost(r, err)
	}
	var buf [16]func()
	e.mu.Lock()
	defer crashOnPanic()
	e.machine.Deliver(e.nowLocked(), l.client, *r)
	wakes, s := e.afterLocked(buf[:0])
	e.mu.Unlock()
	e.notify(wakes, s)
}

// close refuses further jobs and waits for the current ones.
func (q *readers) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.all.Wait()
}
