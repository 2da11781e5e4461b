package engine

import (
	"errors"
	"sync"

	"broker/core"
	"broker/core/internal/store"
)

// A job that the store cannot read must not stop other jobs. When it is about to be leased, it moves to the dead set,
// and the worker gets another job. Inspecting it shows the reason in place of the damaged parts.

// damageReports are the damaged jobs that were reported to the listener.
type damageReports struct {
	mu   sync.Mutex // guards jobs
	jobs map[uint64]struct{}
}

// maxDamageReports limits them. If a store has more damaged jobs, the others are not reported one by one.
const maxDamageReports = 10_000

// isDamage reports whether an error means that the store is damaged and this engine can continue. The leader of a
// cluster does not continue: other nodes have the job intact, and one of them takes over.
func (e *Engine) isDamage(err error) bool {
	var d *store.DamageError
	return err != nil && e.opts.Replicated == nil && errors.As(err, &d)
}

// reportDamage reports a damaged job to the listener, once.
func (e *Engine) reportDamage(seq uint64, err error) {
	d := &e.damage
	d.mu.Lock()
	_, known := d.jobs[seq]
	if known = known || len(d.jobs) >= maxDamageReports; !known {
		if d.jobs == nil {
			d.jobs = map[uint64]struct{}{}
		}
		d.jobs[seq] = struct{}{}
	}
	d.mu.Unlock()
	if !known {
		e.opts.Listener.JobDamaged(seq, err)
	}
}

// damaged returns the reply to use when the damaged part of a job is needed.
func (e *Engine) damaged(r *core.Reply, err error) core.Reply {
	e.reportDamage(r.Seq, err)
	if r.Kind != core.Assigned {
		return core.Reply{Kind: core.Failed, Tag: r.Tag, Seq: r.Seq, Err: core.ErrDamaged}
	}
	var buf [16]func()
	e.mu.Lock()
	defer crashOnPanic()
	e.machine.Quarantine(e.nowLocked(), r.Seq, err.Error())
	wakes, s := e.afterLocked(buf[:0])
	e.mu.Unlock()
	e.notify(wakes, s)
	return core.Reply{Kind: core.TimedOut, Tag: r.Tag, Seq: r.Seq, N: r.N}
}

// showDamage shows the readable parts of a job, and why the others are missing.
func (e *Engine) showDamage(i *core.JobInfo, err error) {
	e.reportDamage(i.Seq, err)
	i.Damage = err.Error()
	if i.Job, err = e.store.Head(i.Seq); err != nil {
		i.Job = &core.Job{Seq: i.Seq, Queue: i.Queue, Type: i.Type, Origin: i.Origin, CreatedAt: i.CreatedAt}
	}
}

func (e *Engine) supplyDamaged(id core.ClientID, seq uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer crashOnPanic()
	e.machine.SupplyDamaged(id, seq)
}
