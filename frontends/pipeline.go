package frontends

import (
	"sync"

	"broker/core"
)

// Pipeline collects the requests that a session reads in one turn, sends them to the broker in one call, and answers
// them in their order.
//
//	requests   echo │ submit │ submit │ grab │ echo      one R each: the data that the protocol needs to answer
//	tags        41  │   42   │   43   │  44  │  45
//	ops             │ Submit │ Submit │ Lease│           an echo needs no broker
//	replies         │   42   │   43   │  44  │           sometimes also a push for an older request
//
// A session takes a pipeline from a Pool for one call of Feed or Deliver, so that idle connections hold none. The zero
// value is ready after Begin.
type Pipeline[R any] struct {
	requests []pipelined[R]
	ops      []core.Op
	replies  []core.Reply
	tags     *uint64 // the last tag; it belongs to the session, because tags outlive the pipeline
	answered int     // requests[:answered] are answered, or wait for a push
	due      bool    // the pipeline must run before the next request

	// Pools for the most frequent operations.
	Submits   OpPool[core.Submit]
	Leases    OpPool[core.Lease]
	Completes OpPool[core.Complete]
	Fails     OpPool[core.Fail]
	Reports   OpPool[core.Report]
	Sends     OpPool[core.SendData]
	Inspects  OpPool[core.Inspect]
	Sleeps    OpPool[core.Sleep]
}

// pipelined is a request in the pipeline.
type pipelined[R any] struct {
	request R
	local   bool // answered without the broker
}

// Responder writes answers. Sessions implement it.
type Responder[R any] interface {
	// Respond answers a request of the pipeline. reply is nil for a request that Local added. If a request has several
	// replies, Respond is called for each. If its reply comes later, Respond is not called.
	Respond(request *R, reply *core.Reply)

	// Push writes a reply to a request of an earlier pipeline.
	Push(reply *core.Reply)
}

// maxKeptReplies limits the space for replies that a pipeline keeps between two uses.
const maxKeptReplies = 2048

// Begin prepares the pipeline for a session, whose last tag is *tags.
func (p *Pipeline[R]) Begin(tags *uint64) { p.tags = tags }

// Expect adds a request that the broker answers and returns the tag for its operation.
func (p *Pipeline[R]) Expect(request R) (tag uint64) {
	return p.add(pipelined[R]{request: request})
}

// Local adds a request that is answered without the broker.
func (p *Pipeline[R]) Local(request R) { p.add(pipelined[R]{request: request, local: true}) }

func (p *Pipeline[R]) add(r pipelined[R]) uint64 {
	p.requests = append(p.requests, r)
	*p.tags++
	return *p.tags
}

// Ask adds an operation.
func (p *Pipeline[R]) Ask(op core.Op) { p.ops = append(p.ops, op) }

// MarkDue makes the pipeline run before the next request.
func (p *Pipeline[R]) MarkDue() { p.due = true }

// Due reports whether the pipeline must run before the next request.
func (p *Pipeline[R]) Due() bool { return p.due }

// Len is the number of requests.
func (p *Pipeline[R]) Len() int { return len(p.requests) }

// Ops is the number of operations.
func (p *Pipeline[R]) Ops() int { return len(p.ops) }

// Last returns the last request and the last operation; nil where there is none.
func (p *Pipeline[R]) Last() (request *R, tag uint64, op core.Op) {
	if n := len(p.requests); n > 0 {
		request, tag = &p.requests[n-1].request, *p.tags
	}
	if n := len(p.ops); n > 0 {
		op = p.ops[n-1]
	}
	return request, tag, op
}

// Run sends the operations to the broker and answers all requests, except requests whose reply comes later. Without
// requests it fetches the replies that Wake announced. Call Reset afterwards.
func (p *Pipeline[R]) Run(b core.Broker, client core.ClientID, s Responder[R]) {
	p.replies = b.Do(client, p.ops, p.replies[:0])
	first := *p.tags - uint64(len(p.requests)) + 1
	for i := range p.replies {
		r := &p.replies[i]
		at := r.Tag - first // huge for an older request
		if at >= uint64(len(p.requests)) {
			s.Push(r)
			continue
		}
		p.answerLocal(int(at), s)
		s.Respond(&p.requests[at].request, r)
	}
	p.answerLocal(len(p.requests), s)
}

// answerLocal answers the local requests before index end.
func (p *Pipeline[R]) answerLocal(end int, s Responder[R]) {
	for ; p.answered < end; p.answered++ {
		if r := &p.requests[p.answered]; r.local {
			s.Respond(&r.request, nil)
		}
	}
}

// Reset forgets all requests and clears all pointers into them.
func (p *Pipeline[R]) Reset() {
	clear(p.requests)
	clear(p.ops)
	clear(p.replies)
	p.requests, p.ops, p.replies, p.answered, p.due = p.requests[:0], p.ops[:0], p.replies[:0], 0, false
	if cap(p.replies) > maxKeptReplies {
		p.replies = nil
	}
	p.Submits.reset()
	p.Leases.reset()
	p.Completes.reset()
	p.Fails.reset()
	p.Reports.reset()
	p.Sends.reset()
	p.Inspects.reset()
	p.Sleeps.reset()
}

// Clear forgets what a call has left in the struct that embeds the pipeline. Without such a struct there is nothing.
func (p *Pipeline[R]) Clear() {}

// OpPool hands out operations that are reused from one round of a pipeline to the next.
type OpPool[T any] struct{ items []T }

// Next returns a zero operation. Its address stays valid: when the slice grows, earlier operations stay in the old
// array.
func (p *OpPool[T]) Next() *T {
	var zero T
	p.items = append(p.items, zero)
	return &p.items[len(p.items)-1]
}

// Len is the number of operations handed out.
func (p *OpPool[T]) Len() int { return len(p.items) }

func (p *OpPool[T]) reset() {
	clear(p.items)
	p.items = p.items[:0]
}

// Pool is a sync.Pool of pointers to T.
type Pool[T any] struct{ pool sync.Pool }

// Get returns a value that was Put, or a new one.
func (p *Pool[T]) Get() *T {
	if t, ok := p.pool.Get().(*T); ok {
		return t
	}
	return new(T)
}

// Put keeps t for a later Get.
func (p *Pool[T]) Put(t *T) { p.pool.Put(t) }
