package beanstalk

import (
	"broker/core"
	"broker/frontends"
)

// pipeline collects the commands of one call of Feed or Deliver.
type pipeline struct{ frontends.Pipeline[pending] }

// pending is a command in the pipeline. Its answer is either a fixed text or made from the broker's replies.
type pending struct {
	text     string
	commit   core.Commit // that text depends on
	answer   answer
	seq      uint64 // job that the command names; if it is not found, the client no longer holds it
	tube     string // tube that the command names
	put      bool
	left     int  // number of replies to come, if only an error in the last one is the answer
	large    bool // the answer may be large
	answered bool
}

// answer appends the answer for a reply. It returns false if the answer comes with a later reply.
type answer func(s *session, b []byte, p *pending, r *core.Reply) ([]byte, bool)

// maxPipeline is the maximum number of commands that go to the broker in one call.
const maxPipeline = 64

// say adds an answer that needs no broker.
func (p *pipeline) say(text string) { p.Local(pending{text: text}) }

// sayAfter adds an answer that depends on a commit which the session's client waits for.
func (p *pipeline) sayAfter(text string, commit core.Commit) {
	p.Local(pending{text: text, commit: commit})
}

// expect adds a command that the broker answers and returns the tag for its operations.
func (p *pipeline) expect(c pending) (tag uint64) {
	if c.large {
		p.MarkDue()
	}
	return p.Expect(c)
}
