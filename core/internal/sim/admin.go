package sim

import (
	"fmt"
	"time"

	"broker/core"
)

// purge removes some jobs of a queue, or the queue.
func (w *world) purge() error {
	q, tag := queueName(w.rng.IntN(4)), w.newTag()
	op := core.Op(&core.Purge{Tag: tag, Queue: q, Limit: 1 + w.rng.IntN(10), Drop: w.rng.IntN(3) == 0})
	if w.rng.IntN(3) == 0 {
		op = &core.DropQueue{Tag: tag, Queue: q, Limit: w.rng.IntN(5), Cursor: uint64(w.rng.IntN(2) * w.rng.IntN(100))}
	}
	before := map[uint64]bool{}
	for _, seq := range w.model.seqs {
		if i := w.look(seq); i != nil && i.Queue == q {
			before[seq] = true
		}
	}
	w.note("%T of %s", op, q)
	delete(w.model.rows, q) // the queue may be gone
	return w.do(w.anyClient(), op, tag, func(r core.Reply) {
		if r := w.ask(&core.InspectQueue{Queue: q}); len(r.Queues) == 0 || !r.Queues[0].Paused {
			delete(w.model.pauses, q) // the queue was dropped
		}
		for seq := range before {
			if w.look(seq) == nil {
				p := w.model.jobs[seq]
				p.recordEnd(w.commitOf(r, w.stores(p)))
			}
		}
	})
}

// flushAll removes all batches and everything that one protocol has submitted, as Faktory's FLUSH does, in pages. No
// part of a batch may remain.
func (w *world) flushAll() error {
	c := w.anyClient()
	for cursor := uint64(0); ; {
		op := &core.PurgeBatches{Tag: w.newTag(), Limit: 1 + w.rng.IntN(5), Cursor: cursor}
		err := w.do(c, op, op.Tag, func(r core.Reply) {
			w.note("batches purged %d, cursor %d, commit %d", r.N, r.Cursor, r.Commit)
			if cursor = r.Cursor; cursor != 0 {
				return
			}
			for _, b := range w.model.batches {
				if b.ended == 0 {
					b.ended = w.commitOf(r, true)
				}
				b.kept = false
			}
		})
		if err != nil {
			return err
		}
		if cursor == 0 {
			break
		}
	}
	for _, number := range w.model.numbers {
		if r := w.ask(&core.InspectBatch{Batch: number}); r.Batch != nil {
			return fmt.Errorf("batch %d was purged and is there", number)
		}
	}
	for _, queue := range []string{completeQueue, successQueue} {
		for _, i := range w.ask(&core.ListJobs{Queue: queue, State: core.Blocked, Limit: 1000}).Jobs {
			return fmt.Errorf("callback %d waits for a batch that was purged", i.Seq)
		}
	}
	return w.purgeOrigin(c, core.Faktory)
}

// purgeOrigin removes the jobs of one protocol.
func (w *world) purgeOrigin(c *client, origin core.Protocol) error {
	before := map[uint64]bool{}
	for _, seq := range w.model.seqs {
		before[seq] = w.look(seq) != nil
	}
	for cursor := uint64(0); ; {
		op := &core.Purge{Tag: w.newTag(), Origin: origin, Limit: 1 + w.rng.IntN(50), Cursor: cursor}
		err := w.do(c, op, op.Tag, func(r core.Reply) {
			cursor = r.Cursor
			for seq, was := range before {
				if was && w.look(seq) == nil {
					p := w.model.jobs[seq]
					p.recordEnd(w.commitOf(r, w.stores(p)))
					before[seq] = false
				}
			}
		})
		if err != nil || cursor == 0 {
			return err
		}
	}
}

// settings pauses, throttles or limits a queue.
func (w *world) settings() error {
	q, tag, c := queueName(w.rng.IntN(4)), w.newTag(), w.anyClient()
	var op core.Op
	switch w.rng.IntN(5) {
	case 4:
		op = &core.KeepDone{Tag: tag, Queue: q, Retention: core.Retention{
			For: time.Duration(w.rng.IntN(3)) * 20 * time.Second, Count: w.rng.IntN(4),
		}}
	case 0:
		op = w.limit(q, tag)
	case 1:
		op = &core.SetQueueMax{Tag: tag, Queue: q, Max: core.QueueMax{Normal: uint32(w.rng.IntN(3) * 20)}}
	default:
		op = &core.PauseQueue{
			Tag: tag, Queue: q, Paused: w.rng.IntN(3) == 0,
			For: time.Duration(w.rng.IntN(2)*w.rng.IntN(9)) * time.Second,
		}
	}
	w.note("%+v", op)
	return w.do(c, op, tag, func(r core.Reply) {
		if op, share := op.(*core.ShareQueue); share {
			w.recordSharing(op, r)
		}
		if op, pause := op.(*core.PauseQueue); pause && r.Kind == core.Accepted {
			w.pausedBy(op)
		}
	})
}

// limit sets or removes a limit of a queue, its types or its keys, or the sharing between keys.
func (w *world) limit(q string, tag uint64) core.Op {
	scope := core.LimitScope(w.rng.IntN(3))
	switch w.rng.IntN(5) {
	case 0, 1:
		return &core.RemoveLimit{Tag: tag, ID: core.LimitID{Queue: q, Scope: scope}}
	case 2:
		if w.rng.IntN(2) == 0 {
			return &core.ShareQueue{
				Tag:     tag,
				Sharing: core.Sharing{Queue: q, Key: core.JobKey{Kind: core.KeyTag, Tag: orderTag}, Ordered: true},
			}
		}
		kind := core.KeyKind(w.rng.IntN(2) * int(core.KeyUnique))
		return &core.ShareQueue{Tag: tag, Sharing: core.Sharing{
			Queue: q, Key: core.JobKey{Kind: kind}, Fair: kind != core.KeyNone && w.rng.IntN(2) == 0,
		}}
	}
	t := core.Throttle{
		Leased: uint32(w.rng.IntN(3)), LeasedPerWorker: uint32(w.rng.IntN(3)),
		SlotFor: time.Duration(w.rng.IntN(2)) * 3 * time.Second,
	}
	if w.rng.IntN(3) == 0 || t == (core.Throttle{}) {
		t.Rate, t.Burst = float64(1+w.rng.IntN(3)), uint32(w.rng.IntN(3))
	}
	return &core.PutLimit{Tag: tag, Limit: core.Limit{Selector: core.InQueue(q, scope, ""), Throttle: t}}
}

// batch opens a batch, or commits or reopens a recent one.
func (w *world) batch() error {
	c, tag, m := w.anyClient(), w.newTag(), w.model
	if n := len(m.numbers); n > 0 && w.rng.IntN(2) == 0 {
		number := m.numbers[n-1-w.rng.IntN(min(n, 4))]
		op := &core.CloseBatch{Tag: tag, Batch: number, Reopen: w.rng.IntN(3) == 0}
		b := m.batches[number]
		b.kept = b.kept && op.Reopen
		b.reopened = b.reopened || op.Reopen
		w.note("batch %d opened again %v", number, op.Reopen)
		return w.do(c, op, tag, nil)
	}
	callback := func(queue string) *core.Job {
		if w.rng.IntN(4) == 0 {
			return nil
		}
		return &core.Job{
			Queue: queue, Origin: core.Faktory, MaxFails: 2, Exhausted: core.ExhaustedBury, Body: []byte(queue),
		}
	}
	op := &core.OpenBatch{Tag: tag, Complete: callback(completeQueue), Success: callback(successQueue)}
	if n := len(m.numbers); n > 0 && w.rng.IntN(3) == 0 {
		op.Parent = m.numbers[n-1]
	}
	if w.rng.IntN(2) == 0 {
		op.OpenUntil = w.clk.Now().Add(time.Duration(w.rng.IntN(60)) * time.Second)
	}
	return w.do(c, op, tag, func(r core.Reply) {
		if r.Kind != core.BatchReply {
			return
		}
		w.note("batch %d, parent %d, commit %d", r.Seq, op.Parent, r.Commit)
		m.batches[r.Seq] = &batch{made: w.commitOf(r, true), kept: op.OpenUntil == 0}
		m.numbers = append(m.numbers, r.Seq)
	})
}
