package remote

import (
	"maps"
	"math"
	"slices"
	"time"

	"broker/core"
)

// kept is what a client has at the leader, so that its node can register it with the next one. It is brought up to date
// by the replies that the client gets.
type kept struct {
	registers []core.Register
	holds     []string // queues
	listens   []*core.Subscribe
	lease     *core.Lease // that waits
	sleeps    bool
	sleepTag  uint64
	awaits    map[uint64]*core.Await // by tag
	watches   map[uint64]*watched    // by tag
	leases    map[uint64]held        // by job; see hold
	pruneAt   int                    // length of leases at which those that have ended are dropped
	told      core.Commit            // the newest commit before the replies that were read; as clients see it
}

// watched is a submission whose client waits for more replies.
type watched struct {
	job      *core.Job // nil: there was no space to keep it
	watch    core.Watch
	deadline core.Instant
	seq      uint64
	joined   bool // the job of another submission
	charged  int  // bytes in the node's budget
}

// held is a lease.
type held struct {
	queue  string
	grant  core.Grant
	holder core.Holder
	worker string
	until  core.Instant // zero: until the connection closes
	shown  core.Commit  // with which the client is told of it; as clients see it
	stored core.Commit  // once this is told, the lease is stored if it ever is; as clients see it
	memory bool         // of a job that only the memory of the leader has
	left   bool         // its client has left
}

// endedLease is a lease of a job that has ended.
type endedLease struct {
	seq uint64
	held
}

// isStored reports whether a lease goes on without its node, once it is stored.
func (l *held) isStored() bool { return l.holder != core.HeldByConn && !l.memory }

// jobLease is a lease of a job.
type jobLease struct {
	seq   uint64
	epoch uint32
}

// minPruned is the least number of leases at which those that have ended are looked for.
const minPruned = 64

// note takes in operations of the client and all replies that came with their answer. It returns the leases that the
// operations have ended.
func (b *Broker) note(k *kept, ops []core.Op, replies []core.Reply) (ended []endedLease) {
	for _, op := range ops {
		b.noteOp(k, op)
	}
	answered := pairsOf(ops)
	for i := range replies {
		r := &replies[i]
		if i := answered.find(r.Tag); i >= 0 {
			b.noteReply(k, ops[i], r, &ended)
		}
		b.notePush(k, r)
	}
	for _, op := range ops {
		if l, is := op.(*core.Lease); is && !isAnswered(l, replies) {
			k.lease = new(*l) // its caller may use it again
			k.lease.Queues = slices.Clone(l.Queues)
		}
	}
	return ended
}

// isAnswered reports whether all replies to a lease have come.
func isAnswered(l *core.Lease, replies []core.Reply) bool {
	return slices.ContainsFunc(replies, func(r core.Reply) bool {
		return r.Tag == l.Tag && r.Kind != core.Reading && (r.Kind != core.Assigned || r.N == 0)
	})
}

// noteOp takes in what an operation registers, whatever its reply.
func (b *Broker) noteOp(k *kept, op core.Op) {
	switch op := op.(type) {
	case *core.Register:
		k.registers = append(k.registers, *op)
	case *core.Unregister:
		k.registers = slices.DeleteFunc(k.registers, func(r core.Register) bool {
			return op.All || r.Queue == op.Queue
		})
		for seq, l := range k.leases {
			if op.All || l.queue == op.Queue {
				delete(k.leases, seq)
			}
		}
	case *core.HoldQueue:
		if !op.Free {
			k.holds = append(k.holds, op.Queue)
		} else if at := slices.Index(k.holds, op.Queue); at >= 0 {
			k.holds = slices.Delete(k.holds, at, at+1)
		}
	case *core.Lease:
		k.sleeps = false
	case *core.Sleep:
		k.sleeps, k.sleepTag = true, op.Tag
	case *core.CancelWaits:
		k.lease, k.sleeps = nil, false
		clear(k.awaits)
		for tag := range k.watches {
			b.unwatch(k, tag)
		}
	case *core.Await:
		if k.awaits == nil {
			k.awaits = make(map[uint64]*core.Await)
		}
		k.awaits[op.Tag] = new(*op)
	case *core.Submit:
		if op.Watch != core.WatchNone {
			b.watch(k, op)
		}
	case *core.Atomic:
		for _, part := range op.Ops {
			if s, is := part.(*core.Submit); is {
				b.noteOp(k, s)
			}
		}
	}
}

// watch keeps a submission as long as its client waits for it, if there is space for its job.
func (b *Broker) watch(k *kept, op *core.Submit) {
	w := &watched{watch: op.Watch, deadline: op.Deadline, charged: len(op.Job.Body) + len(op.Job.Attributes)}
	if b.keptBytes.Add(int64(w.charged)) > maxKept {
		b.keptBytes.Add(int64(-w.charged))
		w.charged = 0
	} else {
		w.job = new(*op.Job)
	}
	if k.watches == nil {
		k.watches = make(map[uint64]*watched)
	}
	k.watches[op.Tag] = w
}

func (b *Broker) unwatch(k *kept, tag uint64) {
	if w := k.watches[tag]; w != nil {
		b.keptBytes.Add(int64(-w.charged))
		delete(k.watches, tag)
	}
}

// noteReply takes in the direct reply to an operation.
func (b *Broker) noteReply(k *kept, op core.Op, r *core.Reply, ended *[]endedLease) {
	if r.Kind == core.Failed {
		if list, is := op.(*core.Atomic); is {
			for _, part := range list.Ops {
				if s, is := part.(*core.Submit); is {
					b.unwatch(k, s.Tag)
				}
			}
		}
		return
	}
	switch op := op.(type) {
	case *core.Submit:
		if w := k.watches[r.Tag]; w != nil && r.Kind == core.Submitted {
			w.seq, w.joined = r.Seq, r.Existing
			if w.job != nil {
				w.job.CreatedAt = createdAt(r)
			}
		}
	case *core.Subscribe:
		l := new(*op)
		l.Kinds, l.Queues, l.Types = slices.Clone(op.Kinds), slices.Clone(op.Queues), slices.Clone(op.Types)
		k.listens = append(k.listens, l)
	case *core.Complete, *core.Fail, *core.Release, *core.Move, *core.Bury, *core.Cancel, *core.TransferLease:
		l, has := k.leases[r.Seq]
		if delete(k.leases, r.Seq); !has {
			l, has = b.takeLeft(r.Seq)
		}
		if has {
			*ended = append(*ended, endedLease{r.Seq, l})
		}
	case *core.Report:
		if l, has := k.leases[r.Seq]; has {
			k.leases[r.Seq] = l.reported(op)
		} else if l, has = b.takeLeft(r.Seq); has {
			b.restore(r.Seq, l.reported(op))
		}
	case *core.LeaseJob:
		if op.ByConn {
			b.hold(k, r, heldBy(&core.Lease{Holder: core.HeldByConn}, r))
		}
	case *core.Lease:
		if r.Kind == core.Assigned {
			b.hold(k, r, heldBy(op, r))
		}
	case *core.Atomic:
		if r.Answer != nil && len(r.Answer.Replies) == len(op.Ops) {
			for i := range op.Ops {
				b.noteReply(k, op.Ops[i], &r.Answer.Replies[i], ended)
			}
		}
	}
}

// notePush takes in what a reply says by itself.
func (b *Broker) notePush(k *kept, r *core.Reply) {
	switch r.Kind { //nolint:exhaustive // the others end nothing
	case core.Assigned:
		if k.lease == nil || k.lease.Tag != r.Tag {
			return
		}
		b.hold(k, r, heldBy(k.lease, r))
		if r.N == 0 {
			k.lease = nil
		}
	case core.NothingReady, core.TimedOut, core.Ended, core.Failed:
		if k.lease != nil && k.lease.Tag == r.Tag {
			k.lease = nil
		}
		delete(k.awaits, r.Tag)
		b.unwatch(k, r.Tag)
	case core.Woken:
		k.sleeps = false
	}
}

// reported is the lease after a report of its worker.
func (l held) reported(op *core.Report) held {
	switch {
	case op.LeaseUntil != 0:
		l.until = op.LeaseUntil
	case l.until != 0:
		l.until = max(l.until, op.ExtendUntil)
	}
	return l
}

// heldBy is the lease that a reply to an operation grants.
func heldBy(op *core.Lease, r *core.Reply) held {
	l := held{grant: r.Lease, holder: op.Holder, worker: op.Worker, shown: r.Commit}
	l.grant.Failure = nil
	if r.Job != nil {
		l.queue, l.memory = r.Job.Queue, r.Job.Ephemeral
	}
	if r.Lease.LeaseFor > 0 {
		l.until = r.Lease.LeasedAt.Add(r.Lease.LeaseFor)
	}
	return l
}

// hold keeps a lease that is not stored, and any other until it is: if it is lost before, it must continue.
func (b *Broker) hold(k *kept, r *core.Reply, l held) {
	l.stored = max(r.Commit, k.told+maxUntold)
	k.restore(r.Seq, l)
	if len(k.leases) >= max(k.pruneAt, minPruned) {
		k.dropStored(k.told)
		k.dropEnded(b.Now(), b.Committed())
		k.pruneAt = 2 * len(k.leases)
	}
}

// maxUntold is how many commits a leader has at most that it has not told with a reply: one is on its way to the disk,
// and one takes changes.
const maxUntold = 2

// restore keeps a lease, also again if its end is lost.
func (k *kept) restore(seq uint64, l held) {
	if k.leases == nil {
		k.leases = make(map[uint64]held)
	}
	k.leases[seq] = l
}

// dropEnded drops the leases that have run out, except those that the client is still to be told of.
func (k *kept) dropEnded(now core.Instant, told core.Commit) {
	for seq, l := range k.leases {
		if l.until != 0 && l.until < now.Add(-time.Second) && l.shown <= told {
			delete(k.leases, seq)
		}
	}
}

// dropStored drops the leases that are stored in certain commits.
func (k *kept) dropStored(certain core.Commit) {
	for seq, l := range k.leases {
		if l.isStored() && l.stored <= certain {
			delete(k.leases, seq)
		}
	}
}

// lose marks the leases whose commits may be lost.
func (k *kept) lose(told core.Commit) {
	for seq, l := range k.leases {
		k.leases[seq] = l.lost(told)
	}
}

// lost is the lease once its commits may be lost: if its client was not told of it, it is told only if another leader
// continues it. The next leader uses the numbers of those commits again.
func (l held) lost(told core.Commit) held {
	if l.stored = math.MaxUint64; l.shown > told {
		l.shown = math.MaxUint64
	}
	return l
}

// waits are the operations that wait at the leader.
func (k *kept) waits() (ops []core.Op) {
	if k.lease != nil {
		ops = append(ops, k.lease)
	}
	if k.sleeps {
		ops = append(ops, &core.Sleep{Tag: k.sleepTag})
	}
	for _, tag := range slices.Sorted(maps.Keys(k.awaits)) {
		ops = append(ops, k.awaits[tag])
	}
	return ops
}

// first are the operations that register a client with a leader, before anything is leased: queues, listeners, and
// jobs that only it knows. lost is false if such a job was not kept.
func (k *kept) first() (ops []core.Op, whole bool) {
	for i := range k.registers {
		ops = append(ops, &k.registers[i])
	}
	for _, queue := range k.holds {
		ops = append(ops, &core.HoldQueue{Queue: queue})
	}
	for _, l := range k.listens {
		ops = append(ops, l)
	}
	for _, tag := range slices.Sorted(maps.Keys(k.watches)) {
		w := k.watches[tag]
		if w.seq == 0 || !w.isOwn() {
			continue
		}
		if w.job == nil {
			return nil, false
		}
		ops = append(ops, w.submit(tag, core.AgainAdmit))
	}
	return ops, true
}

// isOwn reports whether only this client's node may know the job.
func (w *watched) isOwn() bool { return !w.joined && (w.job == nil || w.job.Ephemeral) }

func (w *watched) submit(tag uint64, again core.Again) *core.Submit {
	job := &core.Job{Queue: "-", Ephemeral: true}
	if w.job != nil {
		job = new(*w.job)
	}
	job.Seq = w.seq
	return &core.Submit{Tag: tag, Job: job, Watch: w.watch, Deadline: w.deadline, Again: again}
}

// second are the operations that follow once all nodes have registered their clients: jobs of others, and leases. The
// tag of a lease is the number of its job.
// same says that the leader has all leases that do not end with their connection.
func (k *kept) second(same bool) (joins, leases []core.Op) {
	for _, tag := range slices.Sorted(maps.Keys(k.watches)) {
		if w := k.watches[tag]; w.seq != 0 && !w.isOwn() {
			joins = append(joins, w.submit(tag, core.AgainJoin))
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(k.leases)) {
		l := k.leases[seq]
		if same && l.holder != core.HeldByConn {
			continue
		}
		leases = append(leases, &core.LeaseJob{
			Tag: seq, Ref: core.Ref{Seq: seq}, Worker: l.worker, ByConn: l.holder == core.HeldByConn,
			Resumes: &l.grant, ResumesUntil: l.until,
		})
	}
	return joins, leases
}
