package frontends

import (
	"broker/access"
	"broker/core"
)

// Deliveries remembers the jobs that a session has written until their bytes are sent. A session whose leases outlive
// the connection needs it: a job that was never sent to the client must go to another worker.
type Deliveries struct{ jobs []delivery }

// delivery is one job.
type delivery struct {
	seq   uint64
	epoch uint32
	end   uint64 // position after its last byte, counted from the session's first output
}

// Add notes the job of an Assigned reply that was just written to out.
func (d *Deliveries) Add(out *Outbox, r *core.Reply) {
	d.forget(out.Written(), out.Unsent())
	d.jobs = append(d.jobs, delivery{seq: r.Seq, epoch: r.Lease.Epoch, end: out.Written()})
}

// forget drops the jobs that are completely sent.
func (d *Deliveries) forget(written uint64, unsent int) {
	n := 0
	for n < len(d.jobs) && d.jobs[n].end+uint64(unsent) <= written {
		n++
	}
	d.jobs = d.jobs[:copy(d.jobs, d.jobs[n:])]
}

// Release releases the leases on jobs that were not completely sent. unsent is the number of unsent bytes. A session
// calls it from HandleUnsent.
func (d *Deliveries) Release(b *access.Guard, out *Outbox, unsent int) {
	d.forget(out.Written(), unsent)
	if len(d.jobs) == 0 {
		return
	}
	ops := make([]core.Op, len(d.jobs))
	for i, j := range d.jobs {
		ops[i] = &core.Release{Ref: core.Ref{Seq: j.seq}, Epoch: j.epoch}
	}
	d.jobs = nil
	core.DoOnce(b.Unguarded(), b.Protocol(), ops...)
}
