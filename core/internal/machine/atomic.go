package machine

import (
	"broker/core"
	"broker/core/internal/link"
	"broker/core/internal/table"
)

// A list of operations is processed twice. First, all operations are checked, in order, against the state before the list:
// nothing changes, and the first refusal is the reply. Then all operations are applied; none of them can be refused any more.
//
// An operation must not affect jobs that other operations of the list name. So a job that one operation ends, moves or makes
// wait must not be named again. Apart from that, an operation may only release blocked jobs, and remove finished jobs when it
// ends their last child. Other operations tolerate both.

// atomicRun is a list that is being processed; nil for an operation outside of a list.
type atomicRun struct {
	client   *client
	applying bool
	err      error        // of the operation being checked
	e        *table.Entry // its job, if it exists
	named    []uint64     // the jobs that the operation names

	settled   map[uint64]bool // jobs that must not be named again
	cancelled map[uint64]bool
	ids       map[string]bool // ids of submissions; the next three fields are about submissions too
	locks     map[lockName]bool
	joins     map[string]int // by queue; also of moves
	bytes     int
	waiting   map[uint64][]link.Step // dependencies that the list adds

	replies []core.Reply
}

// lockName is a unique key in a queue.
type lockName struct {
	queue string
	key   table.Digest
}

// atomic applies all operations of a list or none.
func (m *Machine) atomic(c *client, op *core.Atomic) {
	r := core.Reply{Kind: core.Failed, Tag: op.Tag, Err: core.ErrInvalid}
	if len(op.Ops) > core.MaxAtomic {
		m.reply(c, r)
		return
	}
	m.run = &atomicRun{
		client: c, settled: map[uint64]bool{}, cancelled: map[uint64]bool{}, ids: map[string]bool{},
		locks: map[lockName]bool{}, joins: map[string]int{}, waiting: map[uint64][]link.Step{},
	}
	defer func() { m.run = nil }()
	index := m.checkAll(c, op.Ops)
	if c.mustFetch() {
		return
	}
	run := m.run
	if index < len(op.Ops) {
		m.run = nil
		r.Answer, r.Err, r.Commit = &core.Answer{Index: index}, run.err, m.newest()
		if run.e != nil {
			r.Seq = run.e.Seq
		}
		m.reply(c, r)
		return
	}
	run.applying = true
	for _, one := range op.Ops {
		m.apply(c, one)
	}
	m.run = nil
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: run.commit(), Answer: &core.Answer{Replies: run.replies}})
}

// checkAll returns the index of the first operation that is refused, or the number of operations.
func (m *Machine) checkAll(c *client, ops []core.Op) int {
	run := m.run
	for i, one := range ops {
		run.err, run.e, run.named = nil, nil, nil
		if run.err = m.atomicRefusal(one); run.err == nil {
			m.apply(c, one)
		}
		if run.err != nil {
			return i
		}
		m.note(one)
	}
	return len(ops)
}

// atomicRefusal returns why an operation must not be in a list, or must not follow the operations before it.
func (m *Machine) atomicRefusal(op core.Op) error {
	run := m.run
	switch op := op.(type) {
	case *core.Update:
		run.name(m, op.Ref)
	case *core.Move:
		run.name(m, op.Ref)
		run.name(m, op.After...)
	case *core.AddDependencies:
		run.name(m, op.Ref)
		run.name(m, op.After...)
	case *core.RemoveDependencies:
		run.name(m, op.Ref)
	case *core.LeaseJob:
		run.name(m, op.Ref)
	case *core.TransferLease:
		run.name(m, op.Ref)
	case *core.Cancel:
		run.name(m, op.Ref)
		run.name(m, op.Also...)
	case *core.Enqueue:
		run.name(m, op.Ref)
	case *core.Bury:
		run.name(m, op.Ref)
	case *core.Complete:
		run.name(m, op.Ref)
	case *core.Fail:
		run.name(m, op.Ref)
	case *core.Report:
		run.name(m, op.Ref)
	case *core.Annotate:
		run.name(m, op.Ref)
	case *core.Release:
		run.name(m, op.Ref)
	case *core.Submit:
		return run.submitRefusal(op.Job, lockName{op.Job.Queue, m.table.DigestOf(op.Job.UniqueKey)})
	case *core.WriteMeta, *core.WriteDocuments:
	default:
		return core.ErrInvalid
	}
	return run.namedRefusal()
}

// name records the jobs that an operation names; the first one is its subject.
func (r *atomicRun) name(m *Machine, refs ...core.Ref) {
	for _, ref := range refs {
		if h := m.table.Find(ref); h != 0 {
			r.named = append(r.named, m.table.At(h).Seq)
		}
	}
}

func (r *atomicRun) namedRefusal() error {
	for _, seq := range r.named {
		if r.settled[seq] {
			return core.ErrInvalid
		}
	}
	return nil
}

// submitRefusal returns why the list must not contain this submission.
func (r *atomicRun) submitRefusal(j *core.Job, lock lockName) error {
	r.named = append(append(r.named, j.Parent), j.After...)
	switch {
	case r.ids[j.ID]:
		return core.ErrDuplicate
	case j.Unique.Refuses() && r.locks[lock]:
		return core.ErrNotUnique
	}
	return r.namedRefusal()
}

// note records the effects that a checked operation will have.
func (m *Machine) note(op core.Op) {
	run := m.run
	switch op := op.(type) {
	case *core.Submit:
		run.noteSubmit(op.Job, lockName{op.Job.Queue, m.table.DigestOf(op.Job.UniqueKey)})
	case *core.Update:
		if op.Set.Body != nil {
			run.bytes += len(op.Set.Body.Bytes)
		}
	case *core.Annotate:
		run.bytes += len(op.Text) + len(op.Fields)
	case *core.Report, *core.WriteMeta, *core.WriteDocuments:
	case *core.Cancel:
		for _, seq := range run.named {
			run.settled[seq], run.cancelled[seq] = true, !stopsFirst(op, m.table.At(m.table.Handle(seq)))
		}
	case *core.AddDependencies:
		run.noteWaiting()
	case *core.Move:
		run.joins[op.Queue]++
		if e := m.table.At(m.table.Handle(run.named[0])); op.Queue != "" && e.Unique != (table.Digest{}) {
			run.locks[lockName{op.Queue, e.Unique}] = true
		}
		run.noteWaiting()
	default: // atomicRefusal allowed it, and it is about one job
		run.settled[run.named[0]] = true
	}
}

func (r *atomicRun) noteSubmit(j *core.Job, lock lockName) {
	if j.ID != "" {
		r.ids[j.ID] = true
	}
	if j.Unique != core.UniqueNone {
		r.locks[lock] = true
	}
	r.joins[j.Queue]++
	if !j.Ephemeral {
		r.bytes += table.PayloadBytes(j)
	}
}

// noteWaiting records that the job of an operation will wait for the other jobs that the operation names.
func (r *atomicRun) noteWaiting() {
	job := r.named[0]
	r.settled[job] = true
	for _, seq := range r.named[1:] {
		r.waiting[seq] = append(r.waiting[seq], link.Step{Seq: job})
	}
}

// rejected reports whether an operation ends here: every operation does during the check, and later operations whose
// job is gone do.
func (r *atomicRun) rejected(m *Machine, c *client, tag uint64, e *table.Entry, err error) bool {
	if !r.applying {
		r.err, r.e = err, e
		return true
	}
	if e == nil {
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: tag, Commit: m.table.Promise()})
	}
	return e == nil
}

// takes reports whether a reply is a direct reply to an operation of the list. The list keeps these replies.
func (r *atomicRun) takes(c *client, kind core.ReplyKind) bool {
	return c == r.client && kind < core.Assigned
}

// commit is the commit that the reply to the whole list depends on.
func (r *atomicRun) commit() (c core.Commit) {
	for i := range r.replies {
		c = max(c, r.replies[i].Commit)
	}
	return c
}

// locked reports whether the list takes a unique key in a queue before the operation being checked.
func (r *atomicRun) locked(queue string, key table.Digest) bool {
	return r != nil && !r.applying && r.locks[lockName{queue, key}]
}

// cancels reports whether the list removes a job before the operation being checked.
func (r *atomicRun) cancels(seq uint64) bool { return r != nil && r.cancelled[seq] }

// joining returns the number of jobs that the list has added to a queue so far.
func (r *atomicRun) joining(queue string) int {
	if r == nil || r.applying {
		return 0
	}
	return r.joins[queue]
}

// admitted returns the number of bytes that the list has added to the open batch so far.
func (r *atomicRun) admitted() int {
	if r == nil || r.applying {
		return 0
	}
	return r.bytes
}

// waitingFor appends the jobs that the list makes wait for a job.
func (r *atomicRun) waitingFor(seq uint64, into []link.Step) []link.Step {
	if r == nil || r.applying {
		return into
	}
	return append(into, r.waiting[seq]...)
}
