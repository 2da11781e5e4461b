package workq

import (
	"broker/core"
	"broker/frontends"
)

// pipeline collects the commands of one call of Feed or Deliver.
type pipeline struct {
	frontends.Pipeline[pending]
	request request // the current command
}

// pending is a command in the pipeline. Its answer is either a fixed text or made from the broker's reply.
type pending struct {
	text     string
	tag      uint64 // set if the session is blocked on this command
	answer   answer
	id       string // of the job, as the answer names it
	mayWait  bool   // the reply may come later; no input is read until then
	large    bool   // the answer may contain bodies
	isLease  bool   // the answer may be a job
	reading  bool   // the answer is a job, whose body is being read from the disk
	isResult bool   // a half-closed client still receives the answer
	isDelete bool   // noted in the audit log if the broker accepts it
	answered bool
}

// answer encodes a reply that is not Failed.
type answer func(s *session, b []byte, p *pending, r *core.Reply) []byte

// maxPipeline is the maximum number of commands that go to the broker in one call.
const maxPipeline = 64

// Clear implements frontends.Pipelined: it forgets the slices of the input.
func (p *pipeline) Clear() {
	clear(p.request.args[:cap(p.request.args)])
	clear(p.request.flags[:cap(p.request.flags)])
	p.request.word, p.request.body = nil, nil
}

// say adds an answer that needs no broker.
func (p *pipeline) say(text string) { p.Local(pending{text: text}) }

// expect adds a command that the broker answers and returns the tag for its operation. A command that may wait ends the
// pipeline. So does a command with a large answer, so that the session checks the outbox before the next one.
func (p *pipeline) expect(c pending) (tag uint64) {
	if c.mayWait || c.large {
		p.MarkDue()
	}
	return p.Expect(c)
}
