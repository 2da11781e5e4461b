package qless

import "broker/core"

// Qless locks end in a call, according to the caller's now. Other protocols do not send a now. For them, a lock ends
// and a scheduled job becomes due by the wall clock or the last now of any caller, whichever is later. At that time
// Tick releases the broker's lease. Qless clients do not see any effect of that.

// Tick implements frontends.Frontend.
func (f *Frontend) Tick(now core.Instant) {
	if !f.ready.Load() || f.broker.Stopped() {
		return
	}
	f.lock()
	defer f.unlock()
	f.sync()
	wall := seconds(now)
	later := max(wall, f.model.lastNow)
	var ops []core.Op
	due := f.leases.between(minusInf, later, 0, atomicOps)
	for _, jid := range due {
		f.leases.remove(jid)
		if j := f.model.jobs.get(jid); j != nil && j.broker.leased && !j.broker.foreignWorker {
			ops = append(ops, &core.Release{Ref: core.Ref{Seq: j.broker.seq}, Epoch: j.broker.epoch})
			j.broker.leased, j.changed = false, true
		}
	}
	if later > wall {
		ops = append(ops, f.dueEarly(now, later)...)
	}
	if len(ops) > 0 {
		f.do(ops)
	}
}

// dueEarly returns the operations that make jobs ready in the broker that are due for a caller whose clock is ahead.
func (f *Frontend) dueEarly(now core.Instant, later float64) (ops []core.Op) {
	for _, name := range sortedKeys(f.model.queues) {
		for _, jid := range f.model.set(name, scheduledSet).between(seconds(now), later, 0, atomicOps) {
			if j := f.model.jobs.get(jid); j.broker.state == scheduled && j.broker.readyAt > now &&
				j.broker.readyAt < never {
				ops = append(ops, &core.Enqueue{Ref: core.Ref{Seq: j.broker.seq}, If: core.InState(core.Scheduled)})
				j.broker.readyAt, j.changed = now, true
			}
		}
	}
	return ops
}

// follow records the times at which Tick must release the leases of the touched jobs.
func (f *Frontend) follow(t *tx) {
	f.model.lastNow = max(f.model.lastNow, t.now)
	for _, j := range t.touched {
		f.followJob(j)
	}
}

func (f *Frontend) followJob(j *job) {
	if p := j.places[lockSet]; p.in && !j.gone && j.broker.leased && !j.broker.foreignWorker {
		f.leases.add(j.jid, p.score+max(f.model.config.numberOr("grace-period", 10), 0))
	} else {
		f.leases.remove(j.jid)
	}
}
