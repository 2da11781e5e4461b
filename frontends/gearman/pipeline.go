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
	input   int // bytes of the messages
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

// Clear implements frontends.Pipelined.
func (p *pipeline) Clear() { p.msg, p.delayed, p.input = message{}, pending{}, 0 }
