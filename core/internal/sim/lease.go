package sim

import (
	"fmt"
	"slices"
	"time"

	"broker/core"
)

// defaultLease is the engine's default for jobs that say nothing and have no connection that holds them.
const defaultLease = 30 * time.Minute

// leaseSpan is how long a lease of the job lasts; zero: as long as the connection that holds it.
func (p *promise) leaseSpan(holds core.Holder) time.Duration {
	if p.leaseFor == 0 && holds != core.HeldByConn {
		return defaultLease
	}
	return p.leaseFor
}

// granted records a lease that began at since or later, and compares it with what the broker says.
func (w *world) granted(p *promise, i *core.JobInfo, g core.Grant, span time.Duration, since core.Instant) error {
	p.leased, p.epoch, p.holder, p.leaseUntil = true, g.Epoch, 0, 0
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

// leaseAfterCrash checks that a lease begins again with the length of a grant or of an extension, and with nothing of what has
// passed before the restart. Which of them is stored depends on the commit.
func (w *world) leaseAfterCrash(p *promise, i *core.JobInfo) error {
	p.leased, p.holder, p.leaseUntil = i.State == core.Leased, 0, 0
	if !p.leased {
		p.spans = nil
		return nil
	}
	now, until := w.clk.monotonic.Now(), w.clk.toMonotonic(i.LeaseUntil)
	span, known := until.Sub(now), append(p.spans, p.leaseSpan(core.HeldByWorker))
	if !slices.Contains(known, span) {
		return fmt.Errorf("job %d is leased for another %v after a restart, its leases were for %v", p.seq, span, known)
	}
	p.leaseUntil, p.spans = now.Add(span), []time.Duration{span}
	return nil
}

// leasesLast checks that no lease ends early.
func (w *world) leasesLast(p *promise, i *core.JobInfo) error {
	if i == nil {
		return nil
	}
	if until := w.clk.toMonotonic(i.LeaseUntil); p.leased && i.State == core.Leased && p.leaseUntil != 0 && until < p.leaseUntil {
		return fmt.Errorf("job %d is leased until %d, and was promised until %d", p.seq, until, p.leaseUntil)
	}
	return nil
}
