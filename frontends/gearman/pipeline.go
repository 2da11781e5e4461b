package gearman

import (
	"broker/access"
	"broker/frontends"
	"broker/frontends/gearman/packet"
)

// maxPipeline is the maximum number of messages that go to the broker in one call.
const maxPipeline = 512

// pipeline collects the messages of one call of Feed or Deliver.
type pipeline struct {
	frontends.Pipeline[pending]
	msg     message // the current message
	delayed pending // the grab whose NO_JOB was delayed, when its answer is a push
	scratch []byte
}

// pending is a message in the pipeline. Its slices are parts of the input: every answer is written before Feed returns.
type pending struct {
	kind answerKind
	typ  packet.Type // of the request
	arg  []byte      // the argument that the answer repeats
	err  *wireError  // the error of an errorAnswer; for other kinds, the error for an unknown job

	change *access.Change // text command: noted in the audit log if the broker accepts it
}

// answerKind is the kind of an answer.
type answerKind uint8

// brokerAnswer is the broker's reply; noAnswer drops it. The other kinds do not need the broker.
const (
	brokerAnswer        answerKind = iota
	echoAnswer                     // arg, as type typ
	unknownStatusAnswer            // STATUS_RES of a job that does not exist
	errorAnswer
	textAnswer // arg as it is
	noAnswer
)

// full reports that the pipeline should run before the session adds messages.
func (p *pipeline) full() bool { return p.Len() >= maxPipeline || p.Ops() >= maxPipeline }

// begin takes a pipeline for the time of one call; end gives it back.
func (s *session) begin() {
	s.pipeline = s.front.pipelines.Get()
	s.pipeline.Begin(&s.tag)
}

func (s *session) end() {
	s.reset()
	s.front.pipelines.Put(s.pipeline)
	s.pipeline = nil
}

// reset empties the pipeline for the next round.
func (s *session) reset() {
	s.pipeline.Reset()
	s.pipeline.msg, s.pipeline.delayed = message{}, pending{}
}
