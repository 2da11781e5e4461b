package frontends

import (
	"broker/core"
	"broker/frontends/access"
)

// Deliveries remembers the jobs that a session has written to its client until their bytes have left. A session whose
// leases outlive the connection has one, so that a job which the client cannot have received goes to another worker.
type Deliveries struct{ jobs []delivery }

// delivery is one job.
type delivery struct {
	seq   uint64
	epoch uint32
	end   uint64 // position of its last byte in all that the session has written
}

// Add notes the job of an Assigned reply that was just written to out.
func (d *Deliveries) Add(out *Outbox, r *core.Reply) {
	d.forget(out.Written(), out.Unsent())
	d.jobs = append(d.jobs, delivery{seq: r.Seq, epoch: r.Lease.Epoch, end: out.Written()})
}

// forget drops the jobs whose bytes have all left.
func (d *Deliveries) forget(written uint64, unsent int) {
	n := 0
	for n < len(d.jobs) && d.jobs[n].end+uint64(unsent) <= written { //nolint:gosec // a length
		n++
	}
	d.jobs = d.jobs[:copy(d.jobs, d.jobs[n:])]
}

// Release gives back the leases on the jobs of which a byte is among the last unsent ones. A session calls it from
// HandleUnsent.
func (d *Deliveries) Release(b core.Broker, p core.Protocol, out *Outbox, unsent int) {
	d.forget(out.Written(), unsent)
	if len(d.jobs) == 0 {
		return
	}
	ops := make([]core.Op, len(d.jobs))
	for i, j := range d.jobs {
		ops[i] = &core.Release{Ref: core.Ref{Seq: j.seq}, Epoch: j.epoch}
	}
	d.jobs = nil
	core.DoOnce(access.Unguarded(b), p, ops...)
}
