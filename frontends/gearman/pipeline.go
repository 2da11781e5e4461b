package gearman

import (
	"broker/frontends"
	"broker/frontends/access"
)

// maxPipeline is how many messages are decided together.
const maxPipeline = 512

// pipeline is what one call of Feed or Deliver works with.
type pipeline struct {
	frontends.Pipeline[pending]
	msg     message // the message at hand
	delayed pending // the grab whose NO_JOB was delayed, when its answer is a push
	scratch []byte
}

// pending is a message in the pipeline. Its slices are parts of the input: every answer is written before Feed returns.
type pending struct {
	kind answerKind
	typ  packetType // of the request
	arg  []byte     // what the answer repeats
	err  *wireError // errorAnswer; else how to say that the job does not exist

	change *access.Change // text command: noted in the audit log if the broker accepts it
}

// answerKind says what the answer is.
type answerKind uint8

// brokerAnswer is the broker's reply; noAnswer drops it. The others do not need the broker.
const (
	brokerAnswer        answerKind = iota
	echoAnswer                     // arg, as type typ
	unknownStatusAnswer            // STATUS_RES of a job that does not exist
	errorAnswer
	textAnswer // arg as it is
	noAnswer
)

// full reports that the pipeline should run before it takes more.
func (p *pipeline) full() bool { return p.Len() >= maxPipeline || p.Ops() >= maxPipeline }

// begin takes a pipeline for the time of one call; end gives it back.
func (s *session) begin() {
	s.pipeline = s.f.pipelines.Get()
	s.pipeline.Begin(&s.tag)
}

func (s *session) end() {
	s.reset()
	s.f.pipelines.Put(s.pipeline)
	s.pipeline = nil
}

// reset empties the pipeline for the next round.
func (s *session) reset() {
	s.pipeline.Reset()
	s.pipeline.msg, s.pipeline.delayed = message{}, pending{}
}
