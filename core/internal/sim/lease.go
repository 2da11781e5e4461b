package sim

import (
	"fmt"
	"slices"
	"time"

	"broker/core"
)

// defaultLease is the engine's default for jobs without LeaseFor that no connection holds.
const defaultLease = 30 * time.Minute

// request is a client's lease operation and its result.
type request struct {
	span  time.Duration // zero: the job's LeaseFor
	most  int
	least int
	until core.Instant // of the monotonic clock
	given int          // jobs that it has received
	more  int          // jobs that are still announced
}

// recordRequest records a request.
func (w *world) recordRequest(op *core.Lease) {
	r := &request{span: op.LeaseFor, most: max(op.Max, 1), least: op.Min}
	if op.Deadline != 0 {
		r.until = w.clk.monotonic.Now().Add(op.Deadline.Sub(w.clk.Now()))
	}
	w.model.requests[op.Tag] = r
}

// leaseReply checks the number of jobs that a request gets: as many as announced, at most Max, and before its deadline
// at least Min.
func (w *world) leaseReply(c *client, r *core.Reply) error {
	req := w.model.requests[r.Tag]
	if req == nil {
		return fmt.Errorf("client %d got job %d for a lease that it did not ask for", c.id, r.Seq)
	}
	if req.given > 0 && r.N != req.more-1 {
		return fmt.Errorf("client %d was told of %d more jobs, and then of %d", c.id, req.more, r.N)
	}
	if req.given == 0 && r.N+1 < req.least && w.clk.monotonic.Now() < req.until && !w.anyLimits() {
		return fmt.Errorf("client %d got %d jobs before its deadline, and waits for %d", c.id, r.N+1, req.least)
	}
	req.given, req.more = req.given+1, r.N
	if req.given+req.more > req.most {
		return fmt.Errorf("client %d got %d jobs, and asked for %d", c.id, req.given+req.more, req.most)
	}
	return nil
}

// anyLimits reports whether there are limits. If jobs share a limit, a lease may get fewer jobs than it waits for.
func (w *world) anyLimits() bool {
	return len(w.ask(&core.ListLimits{}).Limits) > 0
}

// leaseSpan returns how long a lease of the job lasts; zero: until the connection closes.
func (p *promise) leaseSpan(holds core.Holder) time.Duration {
	if p.leaseFor == 0 && holds != core.HeldByConn {
		return defaultLease
	}
	return p.leaseFor
}

// granted records a lease that began at since or later, and compares it with the state in the broker.
func (w *world) granted(p *promise, i *core.JobInfo, g core.Grant, span time.Duration, since core.Instant) error {
	p.leased, p.epoch, p.holder, p.leaseUntil, p.seen, p.request, p.byName = true, g.Epoch, 0, 0, true, 0, false
	if g.LeaseFor != span {
		return fmt.Errorf("job %d is leased for %v and not for %v", p.seq, g.LeaseFor, span)
	}
	if span == 0 {
		return nil
	}
	p.leaseUntil = since.Add(span)
	p.spans = append(p.spans, span)
	until, now := w.clk.toMonotonic(i.LeaseUntil), w.clk.monotonic.Now()
	if until < p.leaseUntil || since == now && until != p.leaseUntil {
		return fmt.Errorf("job %d is leased for %v from %d and until %d, now %d", p.seq, span, since, until, now)
	}
	return nil
}

// extended records that a lease was extended to a time from now.
func (w *world) extended(p *promise, by time.Duration) {
	p.spans = append(p.spans, by)
	if until := w.clk.monotonic.Now().Add(by); p.leased && p.leaseUntil != 0 {
		p.leaseUntil = max(p.leaseUntil, until)
	}
}

// leaseAfterCrash checks that a lease lasts at most for the full length of a grant or of an extension after a
// restart. How much of it is left depends on the last commit and the clock.
func (w *world) leaseAfterCrash(p *promise, i *core.JobInfo) error {
	p.leased, p.holder, p.leaseUntil = i.State == core.Leased, 0, 0
	if !p.leased {
		p.spans = nil
		return nil
	}
	now, until := w.clk.monotonic.Now(), w.clk.toMonotonic(i.LeaseUntil)
	span, known := until.Sub(now), append(p.spans, p.leaseSpan(core.HeldByWorker))
	for _, past := range w.model.policies {
		for _, o := range past {
			known = append(known, o.policy.LeaseFor)
		}
	}
	for _, r := range w.model.requests { // the client may not have learned of its lease
		known = append(known, r.span)
	}
	if most := slices.Max(known); span < 0 || span > most {
		return fmt.Errorf("job %d is leased for another %v after a restart, its leases were for %v", p.seq, span, known)
	}
	p.leaseUntil = now.Add(span)
	return nil
}

// checkLeaseEnd checks that no lease ends early.
func (w *world) checkLeaseEnd(p *promise, i *core.JobInfo) error {
	if i == nil || !p.leased || i.State != core.Leased {
		return nil
	}
	if i.LeaseUntil == 0 && p.holder != 0 {
		p.leaseUntil = 0 // a worker that sleeps has given up its own limit
	}
	if until := w.clk.toMonotonic(i.LeaseUntil); p.leaseUntil != 0 && until < p.leaseUntil {
		return fmt.Errorf("job %d is leased until %d, and was promised until %d", p.seq, until, p.leaseUntil)
	}
	return nil
}
