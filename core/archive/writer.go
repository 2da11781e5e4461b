package archive

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"broker/core"
	"broker/core/engine"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// Writer ships the commits of one engine. It is the engine's Shipper: Begin once, then Add, then End once. Status may
// be called at any time, on any goroutine.
type Writer struct {
	o      Options
	create func(path string) (file, error)
	stop   context.CancelFunc // ends the shipper's goroutine
	done   chan struct{}      // closed when the goroutine has ended
	full   chan struct{}      // capacity 1: the queue should be shipped now

	mu       sync.Mutex // guards the fields up to the next blank line; not held during I/O
	queue    queue
	sending  int          // bytes taken by the shipper and not written yet
	overflow bool         // entries were dropped: the timeline has ended
	behind   core.Instant // when the oldest commit that cannot be restored yet was sealed; zero: all can be restored
	status   core.Archive

	shipper shipper // owned by its goroutine
}

// queue holds framed entries.
type queue struct {
	buf     []byte
	entries uint64
	first   uint64       // number of the first entry
	firstAt core.Instant // when that entry was sealed
}

// New returns a Writer that does nothing before Begin.
func New(o Options) *Writer {
	o = o.withDefaults()
	w := &Writer{
		o: o, create: createFile, stop: func() {}, done: make(chan struct{}), full: make(chan struct{}, 1),
		status: core.Archive{Dir: o.Dir},
	}
	w.shipper.w = w
	return w
}

// Begin implements engine.Shipper.
func (w *Writer) Begin(s *store.Store, recent engine.Recent) {
	w.prepare(s, recent)
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	go func() { // ends after stop; End waits for it, unless the folder hangs
		defer close(w.done)
		w.run(ctx)
	}()
}

// prepare is Begin without the goroutine.
func (w *Writer) prepare(s *store.Store, recent engine.Recent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shipper.store, w.shipper.from, w.shipper.recent = s, s.Position(), recent
	w.behind = w.o.Clock.Now() // the folder has not been read yet
}

// Add implements engine.Shipper.
func (w *Writer) Add(e *record.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.behind == 0 {
		w.behind = e.At
	}
	if w.overflow {
		return
	}
	whole := *e
	if whole.Epoch == 0 { // not in a cluster, which would have set the format
		whole.Format = record.NewestFormat
	}
	q := &w.queue
	before := len(q.buf)
	q.buf = appendFrame(q.buf, &whole)
	size := len(q.buf) - before
	if held := before + w.sending; held > 0 && held+size > w.o.MaxQueueBytes || size > math.MaxUint32 {
		q.buf = q.buf[:before]
		w.overflow = true
		w.status.Overflows++
	} else {
		if before == 0 {
			q.first, q.firstAt = e.Number, e.At
		}
		q.entries++
	}
	if w.overflow || len(q.buf) > min(shipFrom, w.o.MaxQueueBytes/2) {
		select {
		case w.full <- struct{}{}:
		default: // a signal is already waiting
		}
	}
}

// End implements engine.Shipper. If the folder hangs, End gives up after endWithin, and the rest is not shipped.
func (w *Writer) End() {
	w.stop()
	timeout := time.NewTimer(endWithin)
	defer timeout.Stop()
	select {
	case <-w.done:
	case <-timeout.C:
		w.o.Log(slog.LevelWarn, "the archive takes too long, the last commits are not in it")
	}
}

// Status returns the current state.
func (w *Writer) Status() core.Archive {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.status
	s.Queued = len(w.queue.buf) + w.sending
	if w.behind != 0 {
		s.Lag = max(w.o.Clock.Now().Sub(w.behind), 0)
	}
	return s
}

// take moves the queue to the shipper and reuses the memory of into for the new queue; false: the queue is empty.
func (w *Writer) take(into *queue) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue.buf) == 0 {
		return false
	}
	*into, w.queue = w.queue, queue{buf: into.buf}
	w.sending = len(into.buf)
	return true
}

// idle returns an empty buffer, which reuses the memory of buf unless buf is large.
func idle(buf []byte) []byte {
	if cap(buf) > 2*shipFrom {
		return nil
	}
	return buf[:0]
}

// shipFrom is the size at which a queue is shipped at once.
const shipFrom = 4 << 20

// shipped records that the entries taken by the shipper are in the folder. based: a base copy is there too.
func (w *Writer) shipped(q *queue, based bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sending = 0
	w.status.Entries += q.entries
	w.status.Shipped += uint64(len(q.buf))
	w.status.Bytes += uint64(len(q.buf))
	w.caughtUpLocked(based, nil)
}

// caughtUpLocked updates how far the archive is behind. sent holds the entries that the shipper has taken and not
// written yet.
func (w *Writer) caughtUpLocked(based bool, sent *queue) {
	switch {
	case w.overflow, !based:
	case sent != nil && len(sent.buf) > 0:
		w.behind = sent.firstAt
	case len(w.queue.buf) > 0:
		w.behind = w.queue.firstAt
	default:
		w.behind = 0
	}
}

// restart empties the queue for a new timeline, whose base copy is made after this call.
func (w *Writer) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue{}
	w.sending, w.overflow = 0, false
}

// overflowed reports that the timeline has ended.
func (w *Writer) overflowed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.overflow
}

// ended records that there is no timeline, so entries need not be queued.
func (w *Writer) ended() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.overflow = true
	if w.behind == 0 {
		w.behind = w.o.Clock.Now()
	}
}

// note changes the status.
func (w *Writer) note(change func(s *core.Archive)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.status)
}
