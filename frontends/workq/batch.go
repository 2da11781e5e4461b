package workq

import (
	"sync"

	"broker/core"
)

// batch is the commands of one connection that are handed to the broker together, and the room to do it in. It lives as
// long as one call of Feed and is used again by others, so that idle connections hold none.
type batch struct {
	request request
	slots   []slot
	ops     []core.Op
	replies []core.Reply
	due     bool // it is time to hand it over

	// The operations themselves; never more than maxBatch of a kind, so that they never move.
	submits   []core.Submit
	leases    []core.Lease
	completes []core.Complete
	fails     []core.Fail
}

// slot is the place of one command in the order of answers: either its answer is known, or the broker's reply with this
// tag becomes it.
type slot struct {
	text   string
	tag    uint64
	answer answer
	id     string // of the job, as the answer names it
	wait   bool   // the reply may come later: nothing is read before
	large  bool   // the answer may hold bodies
	lease  bool   // the answer may be a job
	stays  bool   // nothing is taken by the answer: it is waited for, even if the client may be gone
}

// answer writes the broker's reply as bytes. Refusals do not come to it.
type answer func(s *Session, b []byte, sl *slot, r *core.Reply) []byte

// maxBatch is how many commands go to the broker together.
const maxBatch = 64

var batches = sync.Pool{New: func() any { return new(batch) }}

func takeBatch() *batch { return batches.Get().(*batch) } //nolint:forcetypeassert // the pool holds nothing else

// requeueLeased clears the batch of all that it would keep alive.
func giveBack(b *batch) {
	b.reset()
	clear(b.request.args[:cap(b.request.args)])
	clear(b.request.flags[:cap(b.request.flags)])
	b.request.word, b.request.body = nil, nil
	batches.Put(b)
}

// reset empties the batch for the next round.
func (b *batch) reset() {
	clear(b.slots)
	clear(b.ops)
	clear(b.replies)
	clear(b.submits)
	clear(b.leases)
	clear(b.completes)
	clear(b.fails)
	b.slots, b.ops, b.replies, b.due = b.slots[:0], b.ops[:0], b.replies[:0], false
	b.submits, b.leases, b.completes, b.fails = b.submits[:0], b.leases[:0], b.completes[:0], b.fails[:0]
}

// say puts an answer that needs no broker in its place.
func (b *batch) say(text string) { b.put(slot{text: text}) }

// ask puts an operation in its place.
func (b *batch) ask(op core.Op, sl slot) {
	b.ops = append(b.ops, op)
	b.put(sl)
}

// put takes a place. A batch ends with a command that may wait, and with one whose answer may be large, so that the
// outbox is looked at before there is more.
func (b *batch) put(sl slot) {
	b.slots = append(b.slots, sl)
	b.due = b.due || sl.wait || sl.large || len(b.slots) == maxBatch
}

// room returns a place in a slice of operations that never grows beyond maxBatch.
func room[T any](ops *[]T) *T {
	if cap(*ops) == 0 {
		*ops = make([]T, 0, maxBatch)
	}
	*ops = (*ops)[:len(*ops)+1]
	return &(*ops)[len(*ops)-1]
}
