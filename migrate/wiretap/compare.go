package wiretap

import (
	"cmp"
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

	// Renew replaces the second server by an empty one. No other function of these options runs at the same time. Nil:
	// that is not possible, and the comparison ends where it would start anew.
	Renew func() error

	// Reversed means that the first server is the broker and the second one the server that it replaces.
	Reversed bool

	// MaxBytes limits the memory for requests and replies that are not compared yet. Above it requests are skipped, or
	// with Block the caller of Watch waits.
	MaxBytes int
	Block    bool

	// Patience is the time in which the second server must reply, and the servers must have delivered the same jobs;
	// zero: DefaultPatience.
	Patience time.Duration

	// Different is called for each difference that the report keeps. Any goroutine may call it. May be nil.
	Different func(Difference)

	// Gap is called when the comparison starts anew. Any goroutine may call it. May be nil.
	Gap func(Gap)

	times times // zero: defaultTimes, with Patience
}

// DefaultPatience is the default of Options.Patience.
const DefaultPatience = 10 * time.Second

// defaultMaxBytes is the default of MaxBytes.
const defaultMaxBytes = 64 << 20

// The player waits for what the second server may only send after requests of other connections, but not for long:
// deliverWithin for a job that the first server has delivered, and patience for messages to a client that leaves.
const (
	deliverWithin = 500 * time.Millisecond
	patience      = 100 * time.Millisecond
)

// times are the waits of a comparison.
type times struct {
	answer time.Duration // see Options.Patience

	// fresh is the time after an event of a job for which a wait that ends without a job is not compared: the first
	// server may be giving the job to another client, and the comparison may see the two in another order.
	fresh time.Duration

	skip time.Duration // for which requests are skipped after the second server was behind
	look time.Duration // between two looks at what waits
}

var defaultTimes = times{answer: DefaultPatience, fresh: 2 * time.Second, skip: 5 * time.Second, look: time.Second}

// Comparer plays the traffic of a proxy against a second server.
type Comparer struct {
	opts     Options
	p        protocol
	verdicts *verdicts
	held     atomic.Int64 // bytes

	mu    sync.Mutex // guards lines, queue, busy, holds, skip and gaps
	lines map[int]*line
	queue []task
	busy  bool       // the player has a task
	holds bool       // tasks wait for the reply to a submission
	room  *sync.Cond // signals a shorter queue or an idle player
	skip  *Gap       // requests are skipped; nil: not
	gaps  int        // how often the comparison has started anew

	added  chan struct{} // capacity 1: the queue is not empty
	early  earlyDeliveries
	polls  polls
	shared stateRequests // of all connections
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
	gap    *Gap // the comparison starts anew
}

// NewComparer starts a comparison. Close ends it.
func NewComparer(o Options) (*Comparer, error) {
	if err := CheckProtocol(o.Protocol); err != nil {
		return nil, err
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.times == (times{}) {
		o.times = defaultTimes
		o.times.answer = cmp.Or(o.Patience, DefaultPatience)
	}
	c := &Comparer{opts: o, p: protocols[o.Protocol], lines: make(map[int]*line), added: make(chan struct{}, 1)}
	c.room = sync.NewCond(&c.mu)
	c.polls = newPolls(c)
	t := newTally(o.Protocol, o.Server)
	t.onDifference, t.onGap, t.reversed = o.Different, o.Gap, o.Reversed
	c.verdicts = newVerdicts(c.p, t, o.times, c.done)
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
		l = &line{number: e.Conn, c: c, gaps: c.gaps}
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

// Behind returns the bytes of the requests and replies that are not compared yet.
func (c *Comparer) Behind() int64 { return c.held.Load() }

// Report returns the results so far.
func (c *Comparer) Report() Report { return c.verdicts.report() }

// Finish waits until all watched traffic is compared, then ends the comparison.
func (c *Comparer) Finish() Report {
	c.endSkip()
	c.waitEmpty()
	for end := time.Now().Add(c.opts.times.answer + time.Second); c.verdicts.sweep() > 0 &&
		time.Now().Before(end) && !c.ended.Load(); {
		time.Sleep(patience / 10)
	}
	c.Close()
	return c.Report()
}

func (c *Comparer) waitEmpty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (len(c.queue) > 0 || c.busy || c.holds) && !c.ended.Load() {
		c.room.Wait()
	}
}

// waitPlayed waits until all watched requests are played that need no later event.
func (c *Comparer) waitPlayed() {
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

// hold counts memory. Above the limit requests are skipped.
func (c *Comparer) hold(n int) {
	if c.held.Add(int64(n)) > int64(c.opts.MaxBytes) && !c.opts.Block {
		c.startSkip()
	}
}

func (c *Comparer) release(n int) { c.held.Add(int64(-n)) }

// done is called once for each exchange that the player has got.
func (c *Comparer) done(x *exchange) {
	c.release(x.bytes)
	if x.req.creating() {
		c.early.submitting.Add(-1)
	}
}

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
	switch {
	case c.ended.Load():
		return
	case c.skip != nil:
		c.skipTask(t)
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
	conns := make(connections)
	defer c.end(conns)
	sweep := time.NewTicker(c.opts.times.look)
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
			c.verdicts.sweep()
			c.resume()
			if err := c.polls.overdue(conns); err != nil {
				c.Drop(err.Error())
				return
			}
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
	c.busy, c.holds = len(c.queue) > 0, len(c.early.lines) > 0
	if len(c.queue) == 0 {
		c.queue = nil
		return t, false
	}
	t = c.queue[0]
	c.queue[0] = task{}
	c.queue = c.queue[1:]
	return t, true
}

// connections are those to the second server, by the number of the client's. Numbers below zero are of polls.
type connections map[int]*played

func (cs connections) close() {
	for number, p := range cs {
		p.close()
		delete(cs, number)
	}
}

// end closes all connections.
func (c *Comparer) end(conns connections) {
	c.ended.Store(true)
	conns.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue, c.busy, c.holds, c.lines = nil, false, false, make(map[int]*line)
	c.room.Broadcast()
}

// errUnreachable ends the comparison.
var errUnreachable = errors.New("the second server does not accept connections")

// do performs one task.
func (c *Comparer) do(conns connections, t task) error {
	switch {
	case t.gap != nil:
		return c.anew(conns, *t.gap)
	case c.early.keep(t):
		return nil
	case t.push != nil:
		c.verdicts.push(t.line, t.push, true)
		return nil
	case t.closed:
		c.leave(conns, t.line)
		return nil
	}
	send, why := c.verdicts.unplayable(t.x, c.early.submitting.Load() > 0)
	switch {
	case why == whyBefore && c.early.hold(t):
		return nil
	case why != "":
		c.done(t.x)
		c.verdicts.unknown(t.x.req.verb, why)
		return nil
	}
	if t.x.req.kind == takes && t.x.up.none {
		return c.polls.poll(conns, t.x, send)
	}
	number, last := c.verdicts.holder(t.x)
	p, err := c.connection(conns, number, t.line)
	if err != nil {
		return err
	}
	c.verdicts.played(t.x)
	c.await(p.send(t.x, send), t.x)
	if last {
		p.close()
		delete(conns, number)
	}
	return nil
}

// connection returns a connection to the second server, opened with the state of a client's connection if needed.
func (c *Comparer) connection(conns connections, number, line int) (*played, error) {
	if p := conns[number]; p != nil {
		return p, nil
	}
	conn, err := c.opts.Dial(c.ctx)
	if err != nil {
		return nil, errors.Join(errUnreachable, err)
	}
	p := newPlayed(c, conn, line)
	conns[number] = p
	for _, r := range c.stateOf(line, number < 0) {
		x := newExchange(line, r)
		x.mute = true
		c.await(p.send(x, x.req.raw), x)
	}
	return p, nil
}

// lookAtSecond ends the comparison if the second server, which has closed a connection, accepts no others.
func (c *Comparer) lookAtSecond() {
	conn, err := c.opts.Dial(c.ctx)
	if err != nil {
		c.Drop(errors.Join(errUnreachable, err).Error())
		return
	}
	_ = conn.Close() // not used
}

// await waits for a reply of the second server: the later requests depend on it.
func (c *Comparer) await(reply <-chan struct{}, x *exchange) {
	if reply == nil || x.req.kind == waits {
		return
	}
	within := c.opts.times.answer
	if x.req.kind == takes && !x.up.none {
		within = deliverWithin
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-reply:
	case <-timer.C:
	case <-c.ctx.Done():
	}
}

// leave closes a connection once the second server has sent all messages that the first server had sent.
func (c *Comparer) leave(conns connections, line int) {
	for end := time.Now().Add(patience); c.verdicts.awaits(line) && time.Now().Before(end); {
		time.Sleep(patience / 100)
	}
	if p := conns[line]; p != nil {
		p.close()
		delete(conns, line)
	}
	c.polls.leave(conns, line)
	c.verdicts.left(line)
}

// catchUp performs the tasks of connections whose job is known now. With late, it also performs tasks that have waited
// long enough.
func (c *Comparer) catchUp(conns connections, late bool) error {
	for _, line := range c.early.ready(c.verdicts.knows, late) {
		for _, t := range c.early.release(line) {
			if err := c.do(conns, t); err != nil {
				return err
			}
		}
	}
	return nil
}
