package limit

import (
	"strings"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/table"
)

// An ordered queue has a chain for each key: the unfinished jobs of the key in the order of their numbers. At most one
// job of a chain is open, which means that it may be handed out: the first job, if it is ready. While several jobs are
// handed out together, the first job that is not handed out yet is open, so several jobs of a chain can be handed out
// together.
//
//	key a:  1 leased   4 ready   6 ready        nothing is open
//	key b:  2 ready    3 ready                  2 is open; 3 while 2 is handed out together with others
//	no key: 5 ready                             5 is open
//
// The ready list of the queue has all ready jobs. Lanes have only the open jobs. Queues that are not ordered only pay
// for a nil check.

// ordering holds the chains of one queue.
type ordering struct {
	queue, number uint32
	key           core.JobKey
	chains        map[string]uint32
	slots         []chain // by number, from 1
	free          []uint32
	open          queue.List // ready jobs that may be handed out, in the order of before
	before        queue.Before
	last          core.Instant // the latest position of a chain that was put behind the others
}

// chain holds the unfinished jobs of a key.
type chain struct {
	key  string
	head uint32      // the first job
	open uint32      // the job in ordering.open, or zero
	rest *queue.List // the jobs after the first one, in the order of their numbers; nil: none
	out  uint64      // the jobs up to this number are in the current hand-out

	behind core.Instant // the position of its jobs is this one, unless their own is later; zero: their own
}

// orderPlace is where a job is in the ordering of its queue. When a queue becomes ordered, the walk of laneSort gives
// its jobs their places.
type orderPlace struct {
	of uint32 // number of the ordering; zero, or a number other than that of the queue's ordering: none
	// number of the chain; zero: the job has no key; chainReady is set while the job is in the ready list of its queue
	chain uint32
}

const chainReady = 1 << 31

// orders are all orderings.
type orders struct {
	newest  uint32                        // number of the newest ordering
	pages   []*[table.PageSize]orderPlace // by handle; nil where there is no job of an ordered queue
	handOut bool                          // several jobs are being handed out
	handed  []handedOut
	last    handedOut // chain of the job that was handed out last
}

// handedOut is a chain with jobs in the current hand-out.
type handedOut struct {
	of    *ordering
	chain uint32
}

// newOrdering returns the ordering of a queue, without jobs; nil if its rules need none.
func (r *Rules) newOrdering(n uint32, s *queueRules) *ordering {
	if s == nil || !s.sharing.Ordered {
		return nil
	}
	r.orders.newest++
	x := &ordering{
		queue: n, number: r.orders.newest, key: s.sharing.Key, chains: map[string]uint32{}, slots: make([]chain, 1),
	}
	x.before = func(a, b uint32) bool {
		p, q := r.positionOf(a, x), r.positionOf(b, x)
		if p == q || r.table.At(a).Priority() != r.table.At(b).Priority() {
			return r.table.Before(a, b)
		}
		return p < q
	}
	return x
}

// positionOf is the position of an open job among those of other keys.
func (r *Rules) positionOf(h uint32, x *ordering) core.Instant {
	place := r.table.At(h).Place()
	if p := r.orderPlaceOf(h, x); p != nil {
		place = max(place, x.slots[p.chain&^chainReady].behind)
	}
	return place
}

// Before is the order in which the ready jobs of a queue are handed out if limits allow it.
func (r *Rules) Before(q *Queue) queue.Before {
	if q.order != nil {
		return q.order.before
	}
	return r.table.Before
}

// PutBehind puts the key of a job that is not ready behind the keys that have jobs now. Each key gets a position of
// its own, so that keys which are put behind at one time keep their order.
func (r *Rules) PutBehind(h uint32, e *table.Entry) {
	q := r.queues[e.Queue]
	p := r.orderPlaceOf(h, q.order)
	if p == nil || p.chain == 0 {
		return
	}
	x := q.order
	x.last = max(x.last+1, r.table.Now, r.table.FirstPlace)
	c := &x.slots[p.chain&^chainReady]
	if c.open != 0 {
		r.notOfferable(q, c.open)
	}
	if c.behind = x.last; c.open != 0 {
		r.offerable(q, c.open)
	}
}

// ordersBy reports whether an ordering uses the key of these rules; nil is an ordering without a key.
func (x *ordering) ordersBy(s *queueRules) bool {
	if s == nil || !s.sharing.Ordered {
		return x == nil
	}
	return x != nil && x.key == s.sharing.Key
}

// orderPlaceOf returns the place of a job in an ordering; nil: none.
func (r *Rules) orderPlaceOf(h uint32, x *ordering) *orderPlace {
	if x == nil || int(h>>table.PageBits) >= len(r.orders.pages) || r.orders.pages[h>>table.PageBits] == nil {
		return nil
	}
	if p := &r.orders.pages[h>>table.PageBits][h&(table.PageSize-1)]; p.of == x.number {
		return p
	}
	return nil
}

// newOrderPlace gives a job a place in an ordering.
func (r *Rules) newOrderPlace(h uint32, x *ordering) *orderPlace {
	o, at := &r.orders, int(h>>table.PageBits)
	for at >= len(o.pages) {
		o.pages = append(o.pages, nil)
	}
	if o.pages[at] == nil {
		o.pages[at] = new([table.PageSize]orderPlace)
	}
	p := &o.pages[at][h&(table.PageSize-1)]
	*p = orderPlace{of: x.number}
	return p
}

// JoinOrder puts an unfinished job into the chain of its key, if its queue is ordered. The job must not be in the list
// of ready jobs.
func (r *Rules) JoinOrder(h uint32, e *table.Entry) {
	x := r.queues[e.Queue].order
	if x == nil {
		return
	}
	p, key := r.newOrderPlace(h, x), r.table.TagKey(h, x.key.Tag)
	if key == "" {
		return
	}
	number := x.chains[key]
	if number == 0 {
		key = strings.Clone(key)
		if n := len(x.free); n > 0 {
			number, x.free = x.free[n-1], x.free[:n-1]
		} else {
			number = uint32(len(x.slots))
			x.slots = append(x.slots, chain{})
		}
		x.chains[key], x.slots[number] = number, chain{key: key}
	}
	p.chain = number
	switch c := &x.slots[number]; {
	case c.head == 0:
		c.head = h
	case r.table.Older(h, c.head):
		r.follow(c, c.head)
		c.head = h
	default:
		r.follow(c, h)
	}
	r.reopenChain(x, number)
}

// follow adds a job behind the first job of a chain.
func (r *Rules) follow(c *chain, h uint32) {
	if c.rest == nil {
		c.rest = &queue.List{}
	}
	c.rest.Push(h, r.table.Older)
}

// LeaveOrder removes a job from its chain: it has ended, is dead, or leaves the queue. The job must not be in the list
// of ready jobs.
func (r *Rules) LeaveOrder(h uint32, e *table.Entry) {
	if x := r.queues[e.Queue].order; x != nil {
		r.leaveChain(h, x)
	}
}

func (r *Rules) leaveChain(h uint32, x *ordering) {
	p := r.orderPlaceOf(h, x)
	if p == nil {
		return
	}
	number := p.chain
	if *p = (orderPlace{}); number == 0 {
		return
	}
	c := &x.slots[number]
	next := h
	if c.head == h {
		if c.head = 0; c.rest != nil {
			next = c.rest.Front()
			c.head = next
		}
	}
	if c.rest != nil {
		if c.rest.Remove(next, r.table.Older); c.rest.Len() == 0 {
			c.rest = nil
		}
	}
	if c.head == 0 {
		delete(x.chains, c.key)
		*c = chain{}
		x.free = append(x.free, number)
		return
	}
	r.reopenChain(x, number)
}

// reorder puts a job whose tags have changed into the chain of its key.
func (r *Rules) reorder(h uint32, e *table.Entry) {
	q := r.queues[e.Queue]
	p := r.orderPlaceOf(h, q.order)
	if p == nil || q.order.slots[p.chain&^chainReady].key == r.table.TagKey(h, q.order.key.Tag) {
		return
	}
	if e.State == core.Ready {
		r.unreadyInOrder(q, h)
	}
	r.LeaveOrder(h, e)
	r.JoinOrder(h, e)
	if e.State == core.Ready {
		r.readyInOrder(q, h)
		r.host.Offer(e.Queue)
	}
}

// readyInOrder records that a job of an ordered queue is in the list of ready jobs.
func (r *Rules) readyInOrder(q *Queue, h uint32) {
	switch p := r.orderPlaceOf(h, q.order); {
	case p == nil: // the walk has not reached it yet
	case p.chain == 0:
		r.offerable(q, h)
	default:
		p.chain |= chainReady
		r.reopenChain(q.order, p.chain&^chainReady)
	}
}

// unreadyInOrder undoes readyInOrder.
func (r *Rules) unreadyInOrder(q *Queue, h uint32) {
	switch p := r.orderPlaceOf(h, q.order); {
	case p == nil:
	case p.chain == 0:
		r.notOfferable(q, h)
	default:
		p.chain &^= chainReady
		r.reopenChain(q.order, p.chain)
	}
}

// reopenChain opens the job of a chain that may be handed out now.
func (r *Rules) reopenChain(x *ordering, number uint32) {
	c := &x.slots[number]
	next := r.nextInChain(c)
	if p := r.orderPlaceOf(next, x); p == nil || p.chain&chainReady == 0 {
		next = 0
	}
	if next == c.open {
		return
	}
	q := r.queues[x.queue]
	if c.open != 0 {
		r.notOfferable(q, c.open)
	}
	if c.open = next; next != 0 {
		r.offerable(q, next)
		r.host.Offer(x.queue)
	}
}

// nextInChain returns the first job of a chain that is not part of the current hand-out.
func (r *Rules) nextInChain(c *chain) uint32 {
	if c.out == 0 || c.head == 0 || r.table.At(c.head).Seq > c.out {
		return c.head
	}
	if c.rest == nil {
		return 0
	}
	walk := c.rest.From(func(h uint32) bool { return r.table.At(h).Seq <= c.out })
	return walk.Next()
}

// handOut records that a job is part of the current hand-out: the next job of its key may be handed out with it.
func (r *Rules) handOut(q *Queue, h uint32, seq uint64) {
	p := r.orderPlaceOf(h, q.order)
	if p == nil || p.chain == 0 {
		return
	}
	number := p.chain &^ chainReady
	if c := &q.order.slots[number]; c.out == 0 {
		r.orders.handed = append(r.orders.handed, handedOut{q.order, number})
		c.out = seq
	} else {
		c.out = max(c.out, seq)
	}
	r.reopenChain(q.order, number)
	r.orders.last = handedOut{q.order, number}
}

// Following returns the open job with the same key as the last job of the current hand-out from this queue; zero: none.
func (r *Rules) Following(q *Queue) uint32 {
	if last := r.orders.last; last.of != nil && last.of == q.order {
		return last.of.slots[last.chain].open
	}
	return 0
}

// EndHandOut ends the hand-out, and closes jobs that were open only for it.
func (r *Rules) EndHandOut() {
	for _, o := range r.orders.handed {
		o.of.slots[o.chain].out = 0
		r.reopenChain(o.of, o.chain)
	}
	r.orders.handOut, r.orders.handed, r.orders.last = false, r.orders.handed[:0], handedOut{}
}

// OutOfTurn reports whether an ordered queue does not allow any client to lease a job now.
func (r *Rules) OutOfTurn(h uint32, e *table.Entry) bool {
	x := r.queues[e.Queue].order
	if x == nil {
		return false
	}
	if p := r.orderPlaceOf(h, x); p != nil {
		return p.chain != 0 && x.slots[p.chain&^chainReady].head != h
	}
	if r.queues[e.Queue].Sorting {
		return true
	}
	number := x.chains[r.table.TagKey(h, x.key.Tag)] // a dead job
	return number != 0 && r.table.Older(x.slots[number].head, h)
}

// Holder returns the earliest job of the key of a job in an ordered queue that has not ended; zero: none, or the job
// itself.
func (r *Rules) Holder(h uint32, e *table.Entry) uint32 {
	x := r.queues[e.Queue].order
	if x == nil {
		return 0
	}
	number := x.chains[r.table.TagKey(h, x.key.Tag)]
	if p := r.orderPlaceOf(h, x); p != nil {
		number = p.chain &^ chainReady
	}
	if number == 0 || x.slots[number].head == h {
		return 0
	}
	return x.slots[number].head
}

// isOpen reports whether a ready job may be handed out if limits allow it. In an ordered queue, the job must have its
// place.
func (r *Rules) isOpen(q *Queue, h uint32) bool {
	if q.order == nil {
		return true
	}
	p := r.orderPlaceOf(h, q.order)
	return p != nil && (p.chain == 0 || q.order.slots[p.chain&^chainReady].open == h)
}

// Behind returns how many earlier jobs of its key a job waits for, and the key.
func (r *Rules) Behind(h uint32, e *table.Entry) (n int, key string) {
	x := r.queues[e.Queue].order
	p := r.orderPlaceOf(h, x)
	if p == nil || p.chain == 0 {
		return 0, ""
	}
	c := &x.slots[p.chain&^chainReady]
	if c.head == h || c.rest == nil {
		return 0, c.key
	}
	return 1 + c.rest.Search(func(o uint32) bool { return r.table.Older(o, h) }), c.key
}

// followers calls fn for the ready jobs that a hand-out of an open job may include, in order, until it returns false.
func (r *Rules) followers(q *Queue, open uint32, fn func(h uint32) bool) {
	p := r.orderPlaceOf(open, q.order)
	if p == nil || p.chain == 0 {
		return
	}
	c := &q.order.slots[p.chain&^chainReady]
	if c.rest == nil {
		return
	}
	walk := c.rest.From(func(h uint32) bool { return !r.table.Older(open, h) })
	for h := walk.Next(); h != 0; h = walk.Next() {
		if p := r.orderPlaceOf(h, q.order); p.chain&chainReady == 0 || !fn(h) {
			return
		}
	}
}

// openJobs returns how many jobs a hand-out could take from a list of open jobs of a queue; it stops counting at
// most.
func (r *Rules) openJobs(q *Queue, open *queue.List, most int) int {
	n := open.Len()
	if q.order == nil || n >= most {
		return n
	}
	walk := open.From(nil)
	for h := walk.Next(); h != 0 && n < most; h = walk.Next() {
		r.followers(q, h, func(uint32) bool {
			n++
			return n < most
		})
	}
	return n
}
