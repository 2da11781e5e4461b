package wiretap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Options of a Comparer.
type Options struct {
	Protocol string
	Server   string // the first server's name, for the report

	// Dial connects to the second server.
	Dial func(context.Context) (net.Conn, error)

	// MaxBytes limits the memory for requests and replies that are not compared yet. Above it the comparison ends, or
	// with Block the caller of Watch waits.
	MaxBytes int
	Block    bool

	// Different is called for each difference that the report keeps. Any goroutine may call it. May be nil.
	Different func(Difference)
}

// defaultMaxBytes is the default of MaxBytes.
const defaultMaxBytes = 64 << 20

// patience is the time that the player waits for a reply before it continues with other connections.
const patience = 100 * time.Millisecond

// settleWithin is the time that Finish waits for replies.
const settleWithin = answerWithin + time.Second

// Comparer plays the traffic of a proxy against a second server.
type Comparer struct {
	opts     Options
	p        protocol
	verdicts *verdicts
	held     atomic.Int64 // bytes

	mu    sync.Mutex // guards lines, queue and busy
	lines map[int]*line
	queue []task
	busy  bool       // the player has a task
	room  *sync.Cond // signals a shorter queue or an idle player

	added  chan struct{} // capacity 1: the queue is not empty
	early  earlyDeliveries
	ctx    context.Context
	cancel context.CancelFunc
	player sync.WaitGroup
	ended  atomic.Bool
}

// task is work for the player: a request, a message of the first server, or the end of a connection.
type task struct {
	line   int
	x      *exchange
	push   *reply
	closed bool
	late   bool // the task has waited before
}

// NewComparer starts a comparison. Close ends it.
func NewComparer(o Options) (*Comparer, error) {
	if err := CheckProtocol(o.Protocol); err != nil {
		return nil, err
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	c := &Comparer{opts: o, p: protocols[o.Protocol], lines: make(map[int]*line), added: make(chan struct{}, 1)}
	c.room = sync.NewCond(&c.mu)
	t := newTally(o.Protocol, o.Server)
	t.onDifference = o.Different
	c.verdicts = newVerdicts(c.p, t, c.release)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.player.Go(c.play)
	return c, nil
}

// Watch receives the events of a proxy. It blocks only with Options.Block, and keeps no part of the event.
func (c *Comparer) Watch(e Event) {
	if c.ended.Load() {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			c.Drop(fmt.Sprintf("fault in the comparison: %v", r))
		}
	}()
	c.mu.Lock()
	l := c.lines[e.Conn]
	if l == nil && e.Kind == Opened {
		l = &line{number: e.Conn, c: c}
		c.lines[e.Conn] = l
	}
	if e.Kind == Closed {
		delete(c.lines, e.Conn)
	}
	c.mu.Unlock()
	if l == nil {
		return
	}
	switch e.Kind {
	case Opened:
	case FromClient:
		l.client(e.Data)
	case FromServer:
		l.server(e.Data)
	case Closed:
		l.close()
	}
}

// Ended is closed when the comparison has ended.
func (c *Comparer) Ended() <-chan struct{} { return c.ctx.Done() }

// Report returns the results so far.
func (c *Comparer) Report() Report { return c.verdicts.report() }

// Finish waits until all watched traffic is compared, then ends the comparison.
func (c *Comparer) Finish() Report {
	c.waitEmpty()
	for end := time.Now().Add(settleWithin); c.verdicts.sweep(time.Now().Add(-answerWithin)) > 0 &&
		time.Now().Before(end) && !c.ended.Load(); {
		time.Sleep(patience / 10)
	}
	c.Close()
	return c.Report()
}

func (c *Comparer) waitEmpty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (len(c.queue) > 0 || c.busy) && !c.ended.Load() {
		c.room.Wait()
	}
}

// Close ends the comparison.
func (c *Comparer) Close() {
	c.ended.Store(true)
	c.cancel()
	c.player.Wait()
}

// Drop ends the comparison. The report contains the reason.
func (c *Comparer) Drop(why string) {
	if c.ended.Swap(true) {
		return
	}
	c.verdicts.drop(why)
	c.cancel()
}

// hold counts memory. Above the limit the comparison ends.
func (c *Comparer) hold(n int) {
	if c.held.Add(int64(n)) > int64(c.opts.MaxBytes) && !c.opts.Block {
		c.Drop(fmt.Sprintf("the broker in memory is behind by more than %d MiB of requests", c.opts.MaxBytes>>20))
	}
}

func (c *Comparer) release(n int) { c.held.Add(int64(-n)) }

// taskBytes is the memory of a task in addition to its request.
const taskBytes = 512

func (c *Comparer) enqueue(t task) {
	if t.x != nil {
		t.x.bytes += taskBytes
		if t.x.up != nil {
			t.x.bytes += len(t.x.up.raw)
		}
		c.hold(t.x.bytes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.opts.Block && len(c.queue) > 0 && c.held.Load() > int64(c.opts.MaxBytes) && !c.ended.Load() {
		c.room.Wait()
	}
	if c.ended.Load() {
		return
	}
	c.queue = append(c.queue, t)
	c.wakePlayer()
}

func (c *Comparer) wakePlayer() {
	select {
	case c.added <- struct{}{}:
	default: // already notified
	}
}

// play runs the player until the comparison ends.
func (c *Comparer) play() {
	conns := make(map[int]*played)
	defer c.end(conns)
	sweep := time.NewTicker(time.Second)
	defer sweep.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.early.due():
			if err := c.catchUp(conns, true); err != nil {
				c.Drop(err.Error())
				return
			}
			c.wakePlayer() // so that it checks whether it is idle
		case <-sweep.C:
			c.verdicts.sweep(time.Now().Add(-answerWithin))
		case <-c.added:
			for c.ctx.Err() == nil {
				t, more := c.next()
				if !more {
					break
				}
				if err := errors.Join(c.do(conns, t), c.catchUp(conns, false)); err != nil {
					c.Drop(err.Error())
					return
				}
			}
		}
	}
}

// next takes the first task.
func (c *Comparer) next() (t task, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room.Broadcast()
	c.busy = len(c.queue)+len(c.early.lines) > 0
	if len(c.queue) == 0 {
		c.queue = nil
		return t, false
	}
	t = c.queue[0]
	c.queue[0] = task{}
	c.queue = c.queue[1:]
	return t, true
}

// end closes all connections.
func (c *Comparer) end(conns map[int]*played) {
	c.ended.Store(true)
	for _, p := range conns {
		p.close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue, c.busy, c.lines = nil, false, make(map[int]*line)
	c.room.Broadcast()
}

// errUnreachable ends the comparison.
var errUnreachable = errors.New("the second server does not accept connections")

// do performs one task.
func (c *Comparer) do(conns map[int]*played, t task) error {
	switch {
	case c.early.keep(t):
		return nil
	case t.push != nil:
		c.verdicts.push(t.line, t.push, true)
		return nil
	case t.closed:
		c.leave(conns, t.line)
		return nil
	}
	send, why := c.verdicts.unplayable(t.x)
	if t.x.req.creating() {
		c.early.submitting.Add(-1)
	}
	switch {
	case why == whyBefore && c.early.hold(t):
		return nil
	case why != "":
		c.release(t.x.bytes)
		c.verdicts.unknown(t.x.req.verb, why)
		return nil
	}
	p := conns[t.line]
	if p == nil {
		conn, err := c.opts.Dial(c.ctx)
		if err != nil {
			return errors.Join(errUnreachable, err)
		}
		p = newPlayed(c, conn, t.line)
		conns[t.line] = p
	}
	c.verdicts.played(t.x)
	if wait := p.send(t.x, send); wait != nil && t.x.req.kind != waits {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-wait:
		case <-timer.C:
		case <-c.ctx.Done():
		}
	}
	return nil
}

// leave closes a connection once the second server has sent all messages that the first server had sent.
func (c *Comparer) leave(conns map[int]*played, line int) {
	for end := time.Now().Add(patience); c.verdicts.awaits(line) && time.Now().Before(end); {
		time.Sleep(patience / 100)
	}
	if p := conns[line]; p != nil {
		p.close()
		delete(conns, line)
	}
	c.verdicts.left(line)
}

// catchUp performs the tasks of connections whose job is known now. With late, it also performs tasks that have waited
// long enough.
func (c *Comparer) catchUp(conns map[int]*played, late bool) error {
	for _, line := range c.early.ready(c.verdicts.knows, late) {
		for _, t := range c.early.release(line) {
			if err := c.do(conns, t); err != nil {
				return err
			}
		}
	}
	return nil
}
