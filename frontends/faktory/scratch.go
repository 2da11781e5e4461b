package faktory

import (
	"errors"

	"github.com/tidwall/redcon"

	"broker/core"
)

// maxOps is how many operations are collected before the broker is called.
const maxOps = 256

// maxIdleScratch is how much a scratch may keep between two uses, in bytes.
const maxIdleScratch = 1 << 20

// scratch is what one call of a session works with: the operations it collects, one slot for each, and room for what
// comes back. It belongs to the call, not to the connection: most connections are idle.
type scratch struct {
	ops       []core.Op
	slots     []slot
	replies   []core.Reply
	submits   []core.Submit
	completes []core.Complete
	fails     []core.Fail
	lease     core.Lease
	unit      workUnit
	json      []byte
	commands  int // requests since the last flush
}

// slot says how the reply of an operation is answered.
type slot struct {
	kind slotKind
	tag  uint64
	jid  string
	job  *core.Job // slotPush
}

// slotKind is the request that an operation came from.
type slotKind uint8

const (
	slotPush slotKind = iota
	slotAck
	slotFail
	slotFetch
)

func (f *Frontend) borrow() *scratch { return f.scratch.Get().(*scratch) }

// requeueLeased forgets all that the scratch points at. The operations are the broker's no longer, the jobs not ours.
func (f *Frontend) giveBack(b *scratch) {
	f.commands.Add(uint64(b.commands))
	b.commands = 0
	clear(b.unit.unknown[:cap(b.unit.unknown)])
	b.unit.reset()
	if cap(b.json) > maxIdleScratch {
		b.json = nil
	}
	f.scratch.Put(b)
}

func (b *scratch) submit(tag uint64, job *core.Job) {
	b.submits = append(b.submits, core.Submit{Tag: tag, Job: job})
	b.ops = append(b.ops, &b.submits[len(b.submits)-1])
	b.slots = append(b.slots, slot{kind: slotPush, tag: tag, jid: job.ID, job: job})
}

func (b *scratch) complete(tag uint64, jid string, result []byte) {
	b.completes = append(b.completes, core.Complete{
		Tag: tag, Ref: core.Ref{ID: jid}, Authority: core.ByLeased, Result: result,
	})
	b.ops = append(b.ops, &b.completes[len(b.completes)-1])
	b.slots = append(b.slots, slot{kind: slotAck, tag: tag, jid: jid})
}

func (b *scratch) fail(tag uint64, jid string, failure *core.Failure) {
	b.fails = append(b.fails, core.Fail{Tag: tag, Ref: core.Ref{ID: jid}, Authority: core.ByLeased, Failure: failure})
	b.ops = append(b.ops, &b.fails[len(b.fails)-1])
	b.slots = append(b.slots, slot{kind: slotFail, tag: tag, jid: jid})
}

// fetch is the last operation before a flush: what follows may have to wait for it.
func (b *scratch) fetch(lease core.Lease) {
	b.lease = lease
	b.ops = append(b.ops, &b.lease)
	b.slots = append(b.slots, slot{kind: slotFetch, tag: lease.Tag})
}

// flush has the collected operations decided and answers them.
func (s *session) flush(b *scratch) {
	if len(b.ops) == 0 {
		return
	}
	b.replies = s.f.b.Do(s.client, b.ops, b.replies[:0])
	s.settle(b)
	b.clear()
}

// clear forgets the operations, which have been decided.
func (b *scratch) clear() {
	clear(b.ops)
	clear(b.slots)
	clear(b.submits)
	clear(b.completes)
	clear(b.fails)
	b.ops, b.slots, b.lease = b.ops[:0], b.slots[:0], core.Lease{}
	b.submits, b.completes, b.fails = b.submits[:0], b.completes[:0], b.fails[:0]
}

// settle answers the slots with the replies that have come, both in the order of the requests. A lease without a reply
// is parked, and is the last.
func (s *session) settle(b *scratch) {
	slots := b.slots
	for i := range b.replies {
		r := &b.replies[i]
		if s.fetch != 0 && r.Tag == s.fetch {
			s.fetch = 0
			s.answerFetch(b, r)
			continue
		}
		if len(slots) == 0 || slots[0].tag != r.Tag {
			continue // of an operation that nobody waits for any more
		}
		s.answer(b, &slots[0], r)
		slots = slots[1:]
	}
	if len(slots) > 0 {
		s.fetch = slots[0].tag
	}
	clear(b.replies)
	b.replies = b.replies[:0]
	for len(s.late) > 0 {
		r := s.late[0]
		if s.late = s.late[1:]; s.fetch != 0 && r.Tag == s.fetch {
			s.fetch = 0
			s.answerFetch(b, &r)
		}
	}
	s.late = nil
}

// answer writes the reply of one operation.
func (s *session) answer(b *scratch, sl *slot, r *core.Reply) {
	switch sl.kind {
	case slotPush:
		commit, err := s.pushed(sl.job, r)
		if err != nil {
			s.fail(err, s.f.subject(sl.job, err), commit)
			return
		}
		s.ok(commit)
	case slotAck:
		if r.Kind == core.Failed && fatal(r.Err) {
			s.fail(r.Err, sl.jid, r.Commit)
			return
		}
		s.ok(r.Commit) // a job that is gone needs no ACK
	case slotFail:
		if r.Kind == core.Failed {
			s.fail(r.Err, sl.jid, r.Commit)
			return
		}
		s.ok(r.Commit)
	case slotFetch:
		s.answerFetch(b, r)
	}
}

// answerFetch hands a job over, or nothing.
func (s *session) answerFetch(b *scratch, r *core.Reply) {
	switch r.Kind { //nolint:exhaustive // a lease has these ends and no others
	case core.Assigned:
		b.json = s.f.appendJob(b.json[:0], r.Job, jobState{enqueuedAt: r.Lease.EnqueuedAt, failure: r.Lease.Failure})
		s.bulk(b.json, r.Commit)
		s.noteDelivery(delivery{seq: r.Seq, epoch: r.Lease.Epoch, end: s.written})
	case core.Failed:
		s.fail(r.Err, "", r.Commit)
	default:
		s.put(redcon.AppendNull(s.conn.Out().Buf()), r.Commit)
	}
}

// noteDelivery remembers a job until its bytes have left.
func (s *session) noteDelivery(d delivery) {
	unsent := uint64(s.conn.Out().Unsent()) //nolint:gosec // a length
	keep := s.delivered[:0]
	for _, old := range s.delivered {
		if old.end+unsent > s.written {
			keep = append(keep, old)
		}
	}
	s.delivered = append(keep, d)
}

// fatal reports that the broker takes no work at all any more.
func fatal(err error) bool {
	return errors.Is(err, core.ErrStopped) || errors.Is(err, core.ErrShutdown)
}
