package sim

import (
	"fmt"
	"time"

	"broker/core"
)

// submit admits a job of one of the protocols' kinds.
func (w *world) submit() error {
	c := w.anyClient()
	w.nextID++
	j := &core.Job{
		Queue: queueName(w.rng.IntN(4)), Body: fmt.Appendf(nil, "body %d", w.nextID), Origin: w.kinds[c],
		Priority: int32(w.rng.IntN(3) - 1),
	}
	op := &core.Submit{Job: j, Tag: uint64(w.nextID)}
	switch w.kinds[c] {
	case core.Workq:
		w.workqJob(j)
	case core.Gearman:
		if w.rng.IntN(3) == 0 {
			j.Unique, j.UniqueKey = core.UniqueCoalesce, fmt.Sprint("key ", w.rng.IntN(5))
		}
		if w.rng.IntN(3) == 0 {
			j.Ephemeral, op.Watch = true, core.WatchStream
		}
		j.MaxAttempts = uint32(w.rng.IntN(3))
	case core.Faktory, core.Internal:
		w.faktoryJob(j)
	}
	w.link(j)
	return w.do(c, op, func(r core.Reply) {
		if r.Kind == core.Submitted && r.Tag == op.Tag {
			w.note("submit %d to %s by %v, commit %d", r.Seq, j.Queue, j.Origin, r.Commit)
			w.model.submitted(r, j)
		}
	})
}

func (w *world) workqJob(j *core.Job) {
	j.ID = fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012x", w.nextID)
	j.LeaseFor = time.Duration(1+w.rng.IntN(5000)) * time.Millisecond
	j.ExpiresAt = w.clk.Now().Add(time.Duration(1+w.rng.IntN(60_000)) * time.Millisecond)
	if w.rng.IntN(4) == 0 {
		j.ReadyAt, j.ScheduledOrder = w.clk.Now().Add(time.Duration(w.rng.IntN(5000))*time.Millisecond), true
		j.ExpiresAt = j.ReadyAt.Add(time.Minute)
	}
	j.RetainUntil = j.ExpiresAt
	j.MaxFails = uint32(w.rng.IntN(3))
}

func (w *world) faktoryJob(j *core.Job) {
	j.ID = fmt.Sprint("faktory-", w.nextID)
	j.Format = core.Args
	j.LeaseFor = time.Duration(1+w.rng.IntN(20)) * time.Second
	j.MaxFails, j.Backoff, j.Exhausted = uint32(1+w.rng.IntN(3)), core.BackoffFaktory, core.ExhaustedBury
	j.LeaseEnd, j.DeadFor = core.LeaseEndFail, core.DeadFor
	if w.rng.IntN(4) == 0 {
		j.ReadyAt = w.clk.Now().Add(time.Duration(w.rng.IntN(20_000)) * time.Millisecond)
	}
	if w.rng.IntN(5) == 0 {
		j.Unique, j.UniqueKey = core.UniqueRefuse, fmt.Sprint("lock ", w.rng.IntN(3))
		j.UniqueStart = w.rng.IntN(2) == 0
	}
	if w.rng.IntN(6) == 0 {
		j.RetainFor = 30 * time.Second
	}
}

// link makes a job wait for another now and then.
func (w *world) link(j *core.Job) {
	if len(w.model.seqs) == 0 || j.Ephemeral || w.rng.IntN(6) != 0 {
		return
	}
	seq := func() uint64 { return w.model.seqs[w.rng.IntN(len(w.model.seqs))] }
	if w.rng.IntN(3) == 0 {
		j.Parent = seq()
		return
	}
	j.After = []uint64{seq(), seq()}
}

func (w *world) lease() error {
	c := w.anyClient()
	op := &core.Lease{Tag: 1, Queues: []string{queueName(w.rng.IntN(4)), queueName(w.rng.IntN(4))}, Pick: core.Pick(w.rng.IntN(3))}
	switch w.kinds[c] {
	case core.Workq:
		op.Holder = core.HeldByNobody
	case core.Gearman:
		op.Holder = core.HeldByConn
		if w.rng.IntN(2) == 0 {
			op.Queues, op.Pick = nil, core.PickByPriority
		}
		if w.rng.IntN(3) == 0 {
			w.note("sleep")
			return w.do(c, &core.Sleep{}, nil)
		}
	case core.Faktory, core.Internal:
		op.Holder, op.Worker = core.HeldByWorker, fmt.Sprint("worker ", w.rng.IntN(3))
	}
	if w.rng.IntN(2) == 0 {
		op.Until = w.clk.Now().Add(2 * time.Second)
	}
	w.leaseBy[c] = op.Holder
	w.note("lease by %v", w.kinds[c])
	return w.do(c, op, nil)
}

// finish completes or fails some job, by the right or the wrong client.
func (w *world) finish() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	c := w.anyClient()
	if p.holder != 0 && w.rng.IntN(8) != 0 {
		c = p.holder
	}
	if _, open := w.kinds[c]; !open {
		return nil
	}
	claim := map[core.Protocol]core.Claim{core.Workq: core.ByAnyone, core.Gearman: core.ByHolder, core.Faktory: core.ByLeased}[w.kinds[c]]
	var op core.Op = &core.Complete{Tag: 9, Ref: core.Ref{Seq: p.seq}, Claim: claim, Result: []byte("done")}
	failed := w.rng.IntN(3) == 0
	if failed {
		op = &core.Fail{Tag: 9, Ref: core.Ref{Seq: p.seq}, Claim: claim, Failure: &core.Failure{Type: "Oops", Message: "no"}}
	}
	return w.do(c, op, func(r core.Reply) {
		if r.Kind != core.Accepted || r.Tag != 9 {
			return
		}
		w.note("finish %d, failed %v, commit %d", p.seq, failed, r.Commit)
		p.leased, p.mayEnd = false, true
		if !failed {
			p.overBy, p.ended = true, r.Commit
		}
	})
}

// order cancels, buries or enqueues some job.
func (w *world) order() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	ref := core.Ref{Seq: p.seq}
	switch w.rng.IntN(3) {
	case 0:
		p.mayEnd = true
		return w.do(w.anyClient(), &core.Cancel{Tag: 9, Ref: ref}, func(r core.Reply) {
			if r.Kind == core.Accepted {
				w.note("cancel %d", p.seq)
				p.leased, p.overBy, p.ended = false, true, r.Commit
			}
		})
	case 1:
		return w.do(w.anyClient(), &core.Bury{Tag: 9, Ref: ref}, func(r core.Reply) {
			if r.Kind == core.Accepted {
				w.note("bury %d", p.seq)
				p.leased = false
			}
		})
	}
	return w.do(w.anyClient(), &core.Enqueue{Tag: 9, Ref: ref}, nil)
}

func (w *world) anyJob() *promise {
	if len(w.model.seqs) == 0 {
		return nil
	}
	// The newest are the likeliest to be alive.
	n := len(w.model.seqs)
	return w.model.jobs[w.model.seqs[n-1-w.rng.IntN(min(n, 30))]]
}

func (w *world) reconnect() error {
	i := w.rng.IntN(len(w.clients))
	c := w.clients[i]
	w.note("client leaves")
	w.engine.Close(c)
	w.model.gone(c)
	delete(w.kinds, c)
	w.clients = append(w.clients[:i], w.clients[i+1:]...)
	w.connect()
	return w.collect()
}

func (w *world) pause() error {
	q, paused := queueName(w.rng.IntN(4)), w.rng.IntN(3) == 0
	w.note("pause %s: %v", q, paused)
	if err := w.do(w.anyClient(), &core.PauseQueue{Queue: q, Paused: paused}, nil); err != nil {
		return err
	}
	return w.do(w.anyClient(), &core.ThrottleQueue{Queue: q, Throttle: core.Throttle{Leased: uint32(w.rng.IntN(3))}}, nil)
}
