package machine_test

import (
	"fmt"
	"time"

	"broker/core"
)

// maybe returns true once in n times.
func (l *history) maybe(n int) bool { return l.rng.IntN(n) == 0 }

func (l *history) queue() string { return queue(l.rng.IntN(l.queues)) }

func (l *history) soon() core.Instant {
	return l.clk.Now().Add(time.Duration(l.rng.IntN(40_000)-1000) * time.Millisecond)
}

func (l *history) span() time.Duration { return time.Duration(1+l.rng.IntN(20_000)) * time.Millisecond }

// seq returns the number of one of the last 25 stored jobs; 1 if there is none.
func (l *history) seq() uint64 {
	if len(l.seqs) == 0 {
		return 1
	}
	return l.seqs[len(l.seqs)-1-l.rng.IntN(min(len(l.seqs), 25))]
}

func (l *history) ref() core.Ref { return core.Ref{Seq: l.seq()} }

// setWeights chooses the numbers of queues and clients, and how often each kind of operation is applied. With the same
// weights for all seeds, several rare operations would hardly ever follow each other.
func (l *history) setWeights() {
	l.queues, l.clientCount, l.usualAdmin = 1+l.rng.IntN(4), 2+l.rng.IntN(5), l.rng.IntN(adminOps)
	l.kinds = []kind{
		{28, l.submit},
		{20, func(core.Protocol) core.Op { return l.lease() }},
		{20, func(core.Protocol) core.Op { return l.finish() }},
		{10, func(core.Protocol) core.Op { return l.order() }},
		{8, func(core.Protocol) core.Op { return l.worker() }},
		{9, func(core.Protocol) core.Op { return l.admin() }},
		{9, func(core.Protocol) core.Op { return l.change() }},
		{9, l.atomic},
		{3, func(core.Protocol) core.Op { return l.schedule() }},
		{5, func(core.Protocol) core.Op { return l.batch() }},
		{3, func(core.Protocol) core.Op { return l.policy() }},
		{3, func(core.Protocol) core.Op { return l.shared() }},
	}
	for i := range l.kinds {
		k := &l.kinds[i]
		k.weight = max(1, k.weight*[]int{1, 8, 8, 64}[l.rng.IntN(4)]/8)
	}
}

// kind is a kind of operation and its relative frequency.
type kind struct {
	weight int
	make   func(core.Protocol) core.Op
}

// op returns a random operation.
func (l *history) op(p core.Protocol) core.Op {
	sum := 0
	for _, k := range l.kinds {
		sum += k.weight
	}
	n := l.rng.IntN(sum)
	for _, k := range l.kinds {
		if n -= k.weight; n < 0 {
			return k.make(p)
		}
	}
	panic("no kind of operation")
}

func (l *history) submit(p core.Protocol) core.Op {
	j := l.job(p)
	op := &core.Submit{Job: j, Watch: core.Watch(l.rng.IntN(4))}
	if j.Unique == core.UniqueReplace && l.maybe(2) {
		op.DebounceMs = uint32(l.rng.IntN(100_000))
	}
	if j.Unique != core.UniqueNone && l.maybe(3) {
		op.Window = l.soon()
	}
	if op.Watch == core.WatchOutcome || op.Watch == core.WatchRun {
		op.Deadline = l.soon()
	}
	switch {
	case l.maybe(4) && op.Watch != core.WatchNone && op.Watch != core.WatchOutcome:
		j.Ephemeral = true
	case len(l.seqs) == 0: // job 1 may be one that is not stored: a restart breaks who waits for such a job
	case l.maybe(5):
		j.After = []uint64{l.seq(), l.seq()}
	case l.maybe(5):
		j.Parent = l.seq()
	}
	if len(l.groups) > 0 && l.maybe(3) {
		j.Batch = l.groups[len(l.groups)-1-l.rng.IntN(min(len(l.groups), 4))]
	}
	if l.maybe(10) {
		op.Meta = []core.MetaEntry{{Name: fmt.Sprint("test/", l.rng.IntN(5)), Value: []byte(j.Queue)}}
	}
	return op
}

// priority returns one of few priorities, two of which differ only beyond 32 bits.
func (l *history) priority() int64 {
	return []int64{-1, 0, 1, -1, 0, 1, core.MinPriority, core.MinPriority + 1<<32}[l.rng.IntN(8)]
}

// job returns a random job; it may have any policy.
func (l *history) job(p core.Protocol) *core.Job {
	j := &core.Job{
		Queue: l.queue(), Origin: p, Body: make([]byte, l.rng.IntN(300)), Priority: l.priority(),
		MaxAttempts: uint32(l.rng.IntN(4)), MaxFails: uint32(l.rng.IntN(4)), Backoff: core.Backoff(l.rng.IntN(2)),
		Exhausted: core.Exhausted(l.rng.IntN(2)), LeaseEnd: core.LeaseEnd(l.rng.IntN(2)), ScheduledOrder: l.maybe(3),
		PriorFails: uint32(l.rng.IntN(8) / 7),
	}
	if j.PriorFails > 0 && l.maybe(2) {
		j.Failure = &core.Failure{Type: "E", Message: "before", FailedAt: l.clk.Now() - 5}
	}
	j.SeqOrder = !j.ScheduledOrder && len(j.Body)%3 == 0
	j.Own = core.PolicyFields(l.rng.IntN(4)) * core.PolicyFields(l.rng.IntN(11)) % (core.JobFields + 1)
	j.Tallies = core.Tallies(len(j.Body) % (core.AllTallies + 1))
	some := func(set func()) {
		if l.maybe(3) {
			set()
		}
	}
	some(func() { j.ID = fmt.Sprint("id ", l.rng.IntN(200)) })
	some(func() { j.ReadyAt = l.soon() })
	some(func() { j.ExpiresAt = l.soon() })
	some(func() { j.LeaseFor = l.span() })
	some(func() { j.RetainUntil = l.soon() })
	some(func() { j.RetainFor = l.span() })
	some(func() { j.DeadFor = time.Hour })
	some(func() { j.Timeline = uint16(l.rng.IntN(6)) })
	some(func() { j.Tags = [][]string{{"a"}, {"a:1", "b"}, {"a:2"}, {"b", "a:1", "a:2"}}[l.rng.IntN(4)] })
	if l.maybe(8) {
		j.StartBefore = l.soon()
	}
	if l.maybe(3) {
		j.Cost = uint32(1 + l.rng.IntN(4))
	}
	some(func() {
		j.Unique, j.UniqueKey = core.UniquePolicy(l.rng.IntN(4)), fmt.Sprint("key ", l.rng.IntN(4))
		j.UniqueStart = l.maybe(2)
		some(func() { j.UniqueUntil = l.soon() })
	})
	return j
}

func (l *history) lease() core.Op {
	op := &core.Lease{Pick: core.Pick(l.rng.IntN(3)), Worker: fmt.Sprint("worker ", l.rng.IntN(3))}
	if op.Pick == core.PickInOrder && op.Worker == "worker 1" {
		op.Pick = core.PickFirst
	}
	if !l.maybe(4) {
		op.Queues = []string{l.queue(), l.queue(), queue(4)}
	}
	if l.maybe(2) {
		op.Deadline = l.soon()
	}
	if l.maybe(3) {
		op.Max = 1 + l.rng.IntN(5)
		op.Min, op.MaxBytes = l.rng.IntN(op.Max+1), l.rng.IntN(3)*10
	}
	if l.maybe(6) {
		op.LeaseFor = l.span()
	}
	return op
}

func (l *history) finish() core.Op {
	claim, ref := core.FinishAuthority(l.rng.IntN(3)), l.ref()
	switch l.rng.IntN(6) {
	case 0:
		return &core.Fail{
			Ref: ref, Authority: claim, Failure: &core.Failure{Type: "T", Message: "m", Data: []byte("data")},
		}
	case 1:
		op := &core.Fail{Ref: ref, If: l.condition(), Authority: claim, Final: l.maybe(4)}
		if l.maybe(2) {
			op.RetryAt = l.soon()
		}
		return op
	case 2:
		return &core.Report{
			Ref: ref, Authority: claim, Progress: core.Progress{Num: 1, Den: 2}, ExtendUntil: l.soon(),
			LeaseUntil: core.Instant(ref.Seq%2) * l.clk.Now().Add(time.Duration(ref.Seq%5)*time.Second),
		}
	case 4:
		if l.maybe(2) {
			return &core.AppendLog{Ref: ref, Authority: claim, Lines: make([]string, l.rng.IntN(120))}
		}
	case 3:
		return &core.SendData{Ref: ref, Authority: claim, Data: []byte("chunk"), Warning: l.maybe(3)}
	}
	return &core.Complete{Ref: ref, Authority: claim, Result: []byte("result")}
}

func (l *history) order() core.Op {
	ref, is := l.ref(), l.condition()
	switch l.rng.IntN(8) {
	case 6:
		return &core.Rerun{Ref: ref, If: is}
	case 0:
		op := &core.Cancel{
			Ref: ref, If: is, Dependents: core.Dependents(l.rng.IntN(2)), Running: core.CancelRunning(ref.Seq % 2),
		}
		if l.maybe(2) {
			op.Also = []core.Ref{l.ref(), l.ref(), {ID: "nobody"}}
		}
		return op
	case 1:
		return &core.Bury{Ref: ref, If: is}
	case 2, 3:
		return &core.Enqueue{Ref: ref, If: is}
	case 4:
		return &core.Release{Ref: ref, Epoch: uint32(1 + l.rng.IntN(3))}
	case 5:
		return &core.Inspect{Ref: ref}
	case 7:
		if l.maybe(2) {
			return &core.Resubmit{Ref: ref, If: is}
		}
	}
	return &core.Await{Ref: ref, Deadline: l.soon()}
}

// condition returns a random condition, usually none.
func (l *history) condition() (is core.Condition) {
	switch l.rng.IntN(9) {
	case 0, 1:
		is = core.InState(core.States[l.rng.IntN(len(core.States))], core.Ready)
	case 2:
		is.Epoch, is.HasEpoch = uint32(l.rng.IntN(3)), true
	case 3:
		is.Queue = l.queue()
	case 4:
		is.Worker = fmt.Sprint("worker ", l.rng.IntN(3))
	case 5:
		is.Unended = true
	}
	return is
}

func (l *history) worker() core.Op {
	switch l.rng.IntN(9) {
	case 0:
		return &core.CancelLease{}
	case 8:
		return &core.CancelWaits{}
	case 1, 2:
		return &core.Unregister{Queue: l.queue(), All: l.maybe(2)}
	case 3, 4, 5:
		return &core.Sleep{}
	}
	return &core.Register{Queue: l.queue(), LeaseFor: l.span() * time.Duration(l.rng.IntN(2))}
}

// adminOps is the number of cases of admin.
const adminOps = 16

func (l *history) admin() core.Op {
	q := l.queue()
	n := l.rng.IntN(adminOps)
	if l.maybe(2) {
		n = l.usualAdmin
	}
	switch n {
	case 0:
		return &core.CreateQueue{Queue: q}
	case 12, 13:
		return &core.DropQueue{Queue: q, Limit: l.rng.IntN(4)}
	case 1:
		return &core.DropQueue{Queue: q, FoldCase: true}
	case 2:
		return &core.PauseQueue{Queue: q, Paused: true, For: l.span() * time.Duration(l.rng.IntN(2))}
	case 3, 4:
		return &core.PauseQueue{Queue: q}
	case 5:
		return &core.SetQueueMax{Queue: q, Max: core.QueueMax{Normal: uint32(l.rng.IntN(30))}}
	case 6, 7:
		return l.limit(q)
	case 8:
		op := &core.Purge{
			Queue: q, Origin: core.Protocol(l.rng.IntN(len(core.Protocols))), Limit: 1 + l.rng.IntN(5),
			Drop: l.maybe(4),
		}
		if l.maybe(2) {
			op.States = core.States[l.rng.IntN(len(core.States)):]
		}
		return op
	case 9:
		return &core.ResetCounters{Origin: core.Protocol(l.rng.IntN(len(core.Protocols)))}
	case 14:
		return &core.KeepDone{
			Queue:     q[:len(q)*l.rng.IntN(2)],
			Retention: core.Retention{For: l.span() * time.Duration(l.rng.IntN(2)), Count: l.rng.IntN(5)},
		}
	case 15:
		op := &core.MoveSpent{Queue: q}
		if !l.maybe(3) {
			op.Rule = core.SpentRule{
				Leases: uint32(1 + l.rng.IntN(3)), To: l.queue(), ExpiresIn: l.span() * time.Duration(l.rng.IntN(2)),
				FromMove: l.maybe(2),
			}
		}
		return op
	case 10:
		return &core.Drain{On: l.maybe(3), RefuseJobs: l.maybe(2)}
	case 11:
		return &core.WriteMeta{Entries: []core.MetaEntry{{
			Name: fmt.Sprint("test/", l.rng.IntN(5)), Value: []byte(q)[:l.rng.IntN(3)],
		}}}
	}
	return &core.Drain{}
}

func (l *history) batch() core.Op {
	number := uint64(1)
	if n := len(l.groups); n > 0 {
		number = l.groups[n-1-l.rng.IntN(min(n, 4))]
	}
	callback := func() *core.Job {
		if l.maybe(3) {
			return nil
		}
		j := l.job(core.Faktory)
		j.Batch = number * uint64(l.rng.IntN(4)/3)
		return j
	}
	switch l.rng.IntN(4) {
	case 3:
		if l.maybe(3) {
			return &core.PurgeBatches{Limit: 1 + l.rng.IntN(5)}
		}
	case 0:
		op := &core.OpenBatch{Complete: callback(), Success: callback()}
		if l.maybe(2) {
			op.Parent = number
		}
		if l.maybe(2) {
			op.OpenUntil = l.soon()
		}
		return op
	case 1, 2:
		return &core.CloseBatch{Batch: number}
	}
	return &core.CloseBatch{Batch: number, Reopen: true}
}
