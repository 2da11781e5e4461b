package plan

import (
	"broker/core"
	"broker/core/internal/table"
)

// List is a list that is being processed; nil for an operation outside of a list.
//
// A list is processed twice. First, all operations are checked, in order, against the state before the list: nothing
// changes, and the first refusal is the reply. Then all operations are applied; none of them can be refused any more.
//
// An operation must not affect jobs that other operations of the list name. So a job that one operation ends, moves or
// makes wait must not be named again. Apart from that, an operation may only release blocked jobs, and remove finished
// jobs when it ends their last child. Other operations tolerate both.
type List struct {
	Err     error        // of the operation being checked
	Entry   *table.Entry // its job, if it exists
	Replies []core.Reply // direct replies to the operations

	table     *table.Table
	client    uint32 // slot
	applying  bool
	named     []uint64        // the jobs that the operation names
	settled   map[uint64]bool // jobs that must not be named again
	cancelled map[uint64]bool
	ids       map[string]bool // ids of submissions; the next three fields are about submissions too
	locks     map[lock]bool
	joins     map[string]int // by queue; also of moves
	bytes     int
	waiting   map[uint64][]uint64 // dependencies that the list adds: jobs that will wait, by the job that they wait for
	after     map[uint64][]uint64 // the same, by the job that will wait
}

// lock is a unique key in a queue.
type lock struct {
	queue string
	key   table.Digest
}

// New returns an empty list of a client, which is being checked.
func New(t *table.Table, client uint32) *List {
	return &List{
		table: t, client: client, settled: map[uint64]bool{}, cancelled: map[uint64]bool{}, ids: map[string]bool{},
		locks: map[lock]bool{},
		joins: map[string]int{}, waiting: map[uint64][]uint64{}, after: map[uint64][]uint64{},
	}
}

// Next begins the check of an operation. It returns why the operation must not be in a list, or must not follow the
// operations before it.
func (r *List) Next(op core.Op) error {
	r.Err, r.Entry, r.named = nil, nil, nil
	switch op := op.(type) {
	case *core.Update:
		r.name(op.Ref)
	case *core.Move:
		r.name(op.Ref)
		r.name(op.After...)
	case *core.LeaseJob:
		r.name(op.Ref)
	case *core.TransferLease:
		r.name(op.Ref)
	case *core.Cancel:
		r.name(op.Ref)
		r.name(op.Also...)
	case *core.Enqueue:
		r.name(op.Ref)
	case *core.Bury:
		r.name(op.Ref)
	case *core.Complete:
		r.name(op.Ref)
	case *core.Fail:
		r.name(op.Ref)
	case *core.Report:
		r.name(op.Ref)
	case *core.Release:
		r.name(op.Ref)
	case *core.Submit:
		return r.submitRefusal(op.Job)
	case *core.WriteMeta, *core.WriteDocuments:
	default:
		return core.ErrInvalid
	}
	return r.namedRefusal()
}

// name records the jobs that an operation names; the first one is its subject.
func (r *List) name(refs ...core.Ref) {
	for _, ref := range refs {
		if h := r.table.Find(ref); h != 0 {
			r.named = append(r.named, r.table.At(h).Seq)
		}
	}
}

func (r *List) namedRefusal() error {
	for _, seq := range r.named {
		if r.settled[seq] {
			return core.ErrInvalid
		}
	}
	return nil
}

// submitRefusal returns why the list must not contain this submission.
func (r *List) submitRefusal(j *core.Job) error {
	r.named = append(append(r.named, j.Parent), j.After...)
	switch {
	case r.ids[j.ID]:
		return core.ErrDuplicate
	case j.Unique.Refuses() && r.locks[r.lockOf(j)]:
		return core.ErrNotUnique
	}
	return r.namedRefusal()
}

func (r *List) lockOf(j *core.Job) lock { return lock{j.Queue, table.DigestOf(j.UniqueKey)} }

// Note records the effects that an operation will have, once it has passed its check.
func (r *List) Note(op core.Op) {
	switch op := op.(type) {
	case *core.Submit:
		r.noteSubmit(op.Job)
	case *core.Update:
		if op.Set.Body != nil {
			r.bytes += len(op.Set.Body.Bytes)
		}
	case *core.Report, *core.WriteMeta, *core.WriteDocuments:
	case *core.Cancel:
		for _, seq := range r.named {
			r.settled[seq], r.cancelled[seq] = true, !op.OnlyAsks(r.table.At(r.table.Handle(seq)).State)
		}
	case *core.Move:
		r.joins[op.Queue]++
		if e := r.table.At(r.table.Handle(r.named[0])); op.Queue != "" && e.Unique != (table.Digest{}) {
			r.locks[lock{op.Queue, e.Unique}] = true
		}
		r.noteWaiting()
	default: // Next allowed it, and it is about one job
		r.settled[r.named[0]] = true
	}
}

func (r *List) noteSubmit(j *core.Job) {
	if j.ID != "" {
		r.ids[j.ID] = true
	}
	if j.Unique != core.UniqueNone {
		r.locks[r.lockOf(j)] = true
	}
	r.joins[j.Queue]++
	if !j.Ephemeral {
		r.bytes += table.PayloadBytes(j)
	}
}

// noteWaiting records that the job of an operation will wait for the other jobs that the operation names.
func (r *List) noteWaiting() {
	job := r.named[0]
	r.settled[job] = true
	r.after[job] = r.named[1:]
	for _, seq := range r.named[1:] {
		r.waiting[seq] = append(r.waiting[seq], job)
	}
}

// Apply ends the check.
func (r *List) Apply() { r.applying = true }

// IsChecked reports whether a list is being checked; nothing may change.
func (r *List) IsChecked() bool { return r != nil && !r.applying }

// IsApplied reports whether a list is being applied; no operation may be refused.
func (r *List) IsApplied() bool { return r != nil && r.applying }

// Takes reports whether a reply to a client is a direct reply to an operation of the list. The list keeps these
// replies.
func (r *List) Takes(client uint32, kind core.ReplyKind) bool {
	return r != nil && client == r.client && kind < core.Assigned
}

// Commit is the commit that the reply to the whole list depends on.
func (r *List) Commit() (c core.Commit) {
	for i := range r.Replies {
		c = max(c, r.Replies[i].Commit)
	}
	return c
}

// Settles reports whether the job must not be named again.
func (r *List) Settles(seq uint64) bool { return r != nil && r.settled[seq] }

// Locks reports whether the list takes a unique key in a queue before the operation being checked.
func (r *List) Locks(queue string, key table.Digest) bool {
	return r.IsChecked() && r.locks[lock{queue, key}]
}

// Cancels reports whether the list removes a job before the operation being checked.
func (r *List) Cancels(seq uint64) bool { return r != nil && r.cancelled[seq] }

// Joining returns the number of jobs that the list has added to a queue so far.
func (r *List) Joining(queue string) int {
	if !r.IsChecked() {
		return 0
	}
	return r.joins[queue]
}

// Bytes returns the number of bytes that the list has added to the open batch so far.
func (r *List) Bytes() int {
	if !r.IsChecked() {
		return 0
	}
	return r.bytes
}

// WaitingFor returns the jobs that the list makes wait for a job.
func (r *List) WaitingFor(seq uint64) []uint64 {
	if !r.IsChecked() {
		return nil
	}
	return r.waiting[seq]
}

// WaitsFor returns the jobs that the list makes a job wait for.
func (r *List) WaitsFor(seq uint64) []uint64 {
	if !r.IsChecked() {
		return nil
	}
	return r.after[seq]
}
