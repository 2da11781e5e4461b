package remote

import (
	"github.com/fxamacker/cbor/v2"

	"broker/core"
)

// cborMode decodes what this build and the builds around it write: fields that are unknown here are ignored, and a text
// may have any bytes, because clients send them.
var cborMode = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		MaxArrayElements: 1 << 30, MaxMapPairs: 1 << 30, MaxNestedLevels: 32, UTF8: cbor.UTF8DecodeInvalid,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return mode
}()

// cbor is a pointer to a structure that is rare on the wire.
func (c *coder) cbor(v any) {
	if c.reading {
		if cborMode.Unmarshal(c.nextSection(), v) != nil {
			c.fail()
		}
		return
	}
	c.section(func() {
		b, err := cbor.Marshal(v)
		if err != nil {
			panic(err) // the structures have no other types
		}
		c.buf = append(c.buf, b...)
	})
}

// rest are the parts of a reply that rare operations have.
type rest struct {
	Info   *core.JobInfo
	Jobs   []core.JobInfo
	Queues []core.QueueInfo
	Stats  *core.Stats
	Batch  *core.BatchInfo
	Answer *core.Answer
}

// hasRest reports whether a reply has any of these parts.
func hasRest(r *core.Reply) bool {
	return r.Info != nil || r.Jobs != nil || r.Queues != nil || r.Stats != nil || r.Batch != nil || r.Answer != nil
}

// reply is one reply. What is zero in most replies takes no byte of its own.
func reply(c *coder, r *core.Reply) {
	leased, hasMore := r.Lease != core.Grant{}, hasRest(r)
	hasProgress, hasOutcome := r.Progress != nil, r.Outcome != nil
	unsigned(c, &r.Kind)
	c.flags(&r.Existing, &r.CancelRequested, &leased, &hasProgress, &hasOutcome, &hasMore)
	unsigned(c, &r.Tag)
	unsigned(c, &r.Commit)
	fault(c, &r.Err)
	unsigned(c, &r.Seq)
	unsigned(c, &r.Cursor)
	signed(c, &r.N)
	optional(c, &r.Job, job)
	c.bytes(&r.Data)
	if leased {
		grant(c, &r.Lease)
	}
	if hasProgress {
		optional(c, &r.Progress, progress)
	}
	if hasOutcome {
		optional(c, &r.Outcome, outcome)
	}
	if hasMore {
		c.rest(r)
	}
}

func replies(c *coder, all *[]core.Reply) { slice(c, all, reply) }

// rest is the rest of a reply. The replies of an Atomic are replies too, with errors that CBOR does not know.
func (c *coder) rest(r *core.Reply) {
	more := rest{r.Info, r.Jobs, r.Queues, r.Stats, r.Batch, r.Answer}
	var of []core.Reply
	if more.Answer != nil {
		short := *more.Answer
		of, short.Replies, more.Answer = short.Replies, nil, &short
	}
	c.cbor(&more)
	replies(c, &of)
	if !c.reading {
		return
	}
	if more.Answer != nil {
		more.Answer.Replies = of
	}
	r.Info, r.Jobs, r.Queues, r.Stats, r.Batch, r.Answer =
		more.Info, more.Jobs, more.Queues, more.Stats, more.Batch, more.Answer
}
