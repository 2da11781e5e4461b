package frontends

import "broker/core"

// Pipelined is Requests for a session that passes many requests to the broker in one call. R is the data of a request.
// P is a pointer to the session's kind of pipeline, a struct that embeds Pipeline[R].
type Pipelined[R any, P pipelineOf[R]] struct {
	Requests
	Pipeline P      // during Feed and Deliver only
	Tag      uint64 // of the last request

	pool      poolOf[P]
	responder Responder[R]
	most      int // requests that go to the broker in one call
}

// pipelineOf is the part of a Pipeline that Pipelined uses.
type pipelineOf[R any] interface {
	Begin(tags *uint64)
	Due() bool
	Len() int
	Ops() int
	Run(core.Broker, core.ClientID, Responder[R])
	Reset()
	Clear()
}

// poolOf is a Pool of pipelines.
type poolOf[P any] interface {
	Get() P
	Put(P)
}

// pipelinedSession is the session, as Pipelined knows it.
type pipelinedSession[R any] interface {
	Stepper
	Responder[R]
}

// Init makes Pipelined call its session, take its pipelines from a pool, and pass at most this many requests to the
// broker in one call.
func (x *Pipelined[R, P]) Init(session pipelinedSession[R], pool poolOf[P], most int) {
	x.Requests.Init(session)
	x.pool, x.responder, x.most = pool, session, most
}

// Begin takes a pipeline for the time of one call; End gives it back.
func (x *Pipelined[R, P]) Begin() {
	x.Pipeline = x.pool.Get()
	x.Pipeline.Begin(&x.Tag)
}

// End implements Stepper.
func (x *Pipelined[R, P]) End() {
	p := x.Pipeline
	p.Reset()
	p.Clear()
	var none P
	x.Pipeline = none
	x.pool.Put(p)
}

// NextTag returns a new tag, for an operation outside the pipeline.
func (x *Pipelined[R, P]) NextTag() uint64 {
	x.Tag++
	return x.Tag
}

// Due implements Stepper.
func (x *Pipelined[R, P]) Due() bool { return x.Pipeline.Due() || x.Pipeline.Len() >= x.most }

// Flush implements Stepper: it runs the pipeline, if there is something in it.
func (x *Pipelined[R, P]) Flush() {
	if x.Pipeline.Len() > 0 || x.Pipeline.Ops() > 0 {
		x.Run()
	}
}

// Run runs the pipeline, also an empty one, and empties it.
func (x *Pipelined[R, P]) Run() {
	x.RunOnly()
	x.Pipeline.Reset()
}

// RunOnly runs the pipeline and keeps its requests. Reset the pipeline afterwards.
func (x *Pipelined[R, P]) RunOnly() { x.Pipeline.Run(x.Broker, x.Client, x.responder) }
