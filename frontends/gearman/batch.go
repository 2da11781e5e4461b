package gearman

import "broker/core"

// maxBatch is how many messages are decided by one Do. A tag has 16 bits for the place in a batch.
const maxBatch = 512

// batch is what a session collects from one Feed: operations, and in the order of the messages what must be answered.
// The front-end keeps a few of them for all its sessions, so that an idle connection costs none.
type batch struct {
	msg     message
	ops     []core.Op
	waits   []wait
	told    int  // waits[:told] need no more answer
	delayed wait // stands for a grab of an earlier batch
	replies []core.Reply
	scratch []byte

	submits   pool[core.Submit]
	leases    pool[core.Lease]
	completes pool[core.Complete]
	fails     pool[core.Fail]
	reports   pool[core.Report]
	emits     pool[core.SendData]
	inspects  pool[core.Inspect]
	sleeps    pool[core.Sleep]
}

// wait is a message that must be answered, or may be by an error. Its slices are parts of the input: every answer is
// written before Feed returns.
type wait struct {
	kind waitKind
	typ  packetType // of the request
	arg  []byte     // what the answer repeats
	err  *wireError // of forError; else how to say that there is no such job
}

// waitKind says who has the answer: the broker, or we without asking it.
type waitKind uint8

// What comes from the broker stays in its place among what is answered here.
const (
	forBroker waitKind = iota
	forEcho            // arg, as type typ
	forUnknownStatus
	forError
	forText   // arg as it is
	forNobody // the answer of the broker is not told
)

// full reports that no more fits.
func (b *batch) full() bool { return len(b.waits) >= maxBatch || len(b.ops) >= maxBatch }

// reset forgets everything and keeps the memory, unless it is much.
func (b *batch) reset() {
	b.msg = message{}
	clear(b.ops)
	clear(b.waits)
	clear(b.replies)
	b.ops, b.waits, b.replies, b.told = b.ops[:0], b.waits[:0], b.replies[:0], 0
	if cap(b.replies) > 4*maxBatch {
		b.replies = nil
	}
	b.submits.reset()
	b.leases.reset()
	b.completes.reset()
	b.fails.reset()
	b.reports.reset()
	b.emits.reset()
	b.inspects.reset()
	b.sleeps.reset()
}

// pool hands out values to point at that stay where they are while it grows.
type pool[T any] struct {
	items []*T
	used  int
}

func (p *pool[T]) next() *T {
	if p.used == len(p.items) {
		p.items = append(p.items, new(T))
	}
	p.used++
	return p.items[p.used-1]
}

// reset takes all values back, emptied.
func (p *pool[T]) reset() {
	var zero T
	for _, t := range p.items[:p.used] {
		*t = zero
	}
	p.used = 0
}
