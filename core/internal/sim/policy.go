package sim

import (
	"fmt"
	"slices"
	"time"

	"broker/core"
)

// Policies of queues and types. The model has the policies that were set, and computes from them how long a lease
// lasts, what follows a failure, and when a job ends. No policy here drops jobs that have used up their leases, so few
// jobs end without a client.

// policyVersion is a policy as clients have set it.
type policyVersion struct {
	policy core.JobPolicy
	made   core.Commit
	from   core.Instant // of the monotonic clock: when it was set; zero: before the last start
}

// policyKey names the queue or type of a policy.
type policyKey struct {
	scope core.PolicyScope
	name  string
}

var policyQueues = []string{queueName(0), queueName(1), "dlq"}

// policy changes a policy.
func (w *world) policy() error {
	c, tag := w.anyClient(), w.newTag()
	op := &core.PutPolicy{
		Tag: tag, Scope: core.PolicyScope(w.rng.IntN(2)), Name: policyQueues[w.rng.IntN(2)],
		Remove: core.PolicyFields(w.rng.IntN(core.AllPolicyFields + 1)),
	}
	p := &op.Set
	p.Has = core.PolicyFields(w.rng.IntN(core.AllPolicyFields + 1))
	p.MaxAttempts, p.MaxFails = uint32(1+w.rng.IntN(3)), uint32(1+w.rng.IntN(3))
	p.Backoff = core.BackoffRule{
		Kind: core.BackoffKind(w.rng.IntN(3)), Base: time.Duration(w.rng.IntN(5)) * time.Second, Max: 8 * time.Second,
	}
	p.LeaseFor, p.ExpiresIn, p.RetainFor = time.Duration(1+w.rng.IntN(9))*time.Second, time.Minute, 20*time.Second
	p.Unstored = w.rng.IntN(4) == 0
	if p.Exhausted = core.ExhaustedBury; w.rng.IntN(2) == 0 {
		p.MoveTo = policyQueues[w.rng.IntN(3)]
	}
	w.note("%+v", op)
	return w.do(c, op, tag, func(r core.Reply) {
		if r.Kind != core.Accepted {
			return
		}
		key := policyKey{op.Scope, op.Name}
		now, past := w.clk.monotonic.Now(), w.model.policies[key]
		next := policyVersion{made: w.commitOf(r, true), from: now}
		if n := len(past); n > 0 {
			next.policy = past[n-1].policy
		}
		for member := core.PolicyFields(1); member <= core.AllPolicyFields && member != 0; member <<= 1 {
			switch {
			case p.Has&member != 0:
				next.policy = set(next.policy, p, member)
				next.policy.Has |= member
			case op.Remove&member != 0:
				next.policy = set(next.policy, &core.JobPolicy{}, member)
				next.policy.Has &^= member
			}
		}
		w.model.policies[key] = append(past, next)
	})
}

// set returns a policy with one member copied from another policy.
func set(p core.JobPolicy, from *core.JobPolicy, member core.PolicyFields) core.JobPolicy {
	switch member {
	case core.PolicyMaxAttempts:
		p.MaxAttempts = from.MaxAttempts
	case core.PolicyMaxFails:
		p.MaxFails = from.MaxFails
	case core.PolicyBackoff:
		p.Backoff = from.Backoff
	case core.PolicyExhausted:
		p.Exhausted, p.MoveTo = from.Exhausted, from.MoveTo
	case core.PolicyLeaseFor:
		p.LeaseFor = from.LeaseFor
	case core.PolicyExpiresIn:
		p.ExpiresIn = from.ExpiresIn
	case core.PolicyRetainFor:
		p.RetainFor = from.RetainFor
	case core.PolicyDurability:
		p.Unstored = from.Unstored
	case core.JobFields: // a mask, not a member
	}
	return p
}

// inForce returns the policy that sets a member for jobs of a queue; nil: none. In the simulation, types have the names
// of their queues.
func (m *model) inForce(queue string, member core.PolicyFields) *core.JobPolicy {
	for _, scope := range []core.PolicyScope{core.PolicyOfType, core.PolicyOfQueue} {
		if past := m.policies[policyKey{scope, queue}]; len(past) > 0 && past[len(past)-1].policy.Has&member != 0 {
			return &past[len(past)-1].policy
		}
	}
	return nil
}

// changedSince reports whether a policy for a queue has changed since an instant of the monotonic clock.
func (m *model) changedSince(queue string, since core.Instant) bool {
	for _, scope := range []core.PolicyScope{core.PolicyOfType, core.PolicyOfQueue} {
		for _, o := range m.policies[policyKey{scope, queue}] {
			if o.from >= since && o.from != 0 {
				return true
			}
		}
	}
	return false
}

const limits = core.PolicyMaxAttempts | core.PolicyMaxFails

// mostLeases returns how many leases a job may have; zero: no limit.
func (m *model) mostLeases(p *promise, queue string) uint32 {
	if o := m.inForce(queue, core.PolicyMaxAttempts); o != nil && p.own&limits == 0 && !p.ephemeral {
		return o.MaxAttempts
	}
	return p.maxAttempts
}

// leaseLength returns how long a lease of a job lasts, with the policies; zero: until the connection closes.
func (w *world) leaseLength(p *promise, queue string, holds core.Holder) time.Duration {
	if o := w.model.inForce(queue, core.PolicyLeaseFor); o != nil && p.own&core.PolicyLeaseFor == 0 && !p.ephemeral {
		return o.LeaseFor
	}
	return p.leaseSpan(holds)
}

// checkLease checks that the policies allow a further lease of a job.
func (w *world) checkLease(p *promise, i *core.JobInfo, since core.Instant) error {
	most := w.model.mostLeases(p, i.Queue)
	byPolicy := w.model.inForce(i.Queue, core.PolicyMaxAttempts) != nil && !p.ephemeral && !p.unknown
	if byPolicy && i.Attempts-i.MovedAfter > most && p.own&limits == 0 &&
		!w.model.changedSince(i.Queue, min(since, w.clk.monotonic.Now())) {
		return fmt.Errorf("job %d of queue %s has lease %d of %d", p.seq, i.Queue, i.Attempts, most)
	}
	return w.checkSpent(i, since)
}

// checkFailure checks the effect of a failure that a worker has reported.
func (w *world) checkFailure(p *promise, was *core.JobInfo) error {
	m, is := w.model, w.look(p.seq)
	if p.asked() && was != nil && was.CancelRequestedAt != 0 {
		return w.checkStopped(p)
	}
	if was == nil || was.Rerun || p.ephemeral || p.seq == 0 || p.unknown {
		return nil
	}
	most := max(p.maxFails, 1)
	if o := m.inForce(was.Queue, core.PolicyMaxFails); o != nil && p.own&limits == 0 {
		most = o.MaxFails
	}
	leases := m.mostLeases(p, was.Queue)
	if was.Fails+1 < most && (leases == 0 || was.Attempts-was.MovedAfter < leases) {
		if is == nil || !is.State.Unfinished() || is.Queue != was.Queue && !m.spent.target[is.Queue] ||
			is.Fails != was.Fails+1 {
			return fmt.Errorf("job %d has failed %d times of %d and is %+v", p.seq, was.Fails+1, most, is)
		}
		return nil
	}
	end := m.inForce(was.Queue, core.PolicyExhausted)
	if end == nil || p.own&core.PolicyExhausted != 0 {
		return nil // no policy applies
	}
	switch {
	case end.MoveTo != "" && end.MoveTo != was.Queue:
		waits := was.State == core.Blocked // a client has failed it without a lease; it still waits for the same jobs
		if is == nil || is.Queue != end.MoveTo || is.Fails != 0 || waits != (is.State == core.Blocked) ||
			!waits && is.State != core.Ready && is.State != core.Leased {
			return fmt.Errorf("job %d has failed %d times of %d and did not move to %s: %+v", p.seq, was.Fails+1, most,
				end.MoveTo, is)
		}
	case is == nil || is.State != core.Dead:
		return fmt.Errorf("job %d has failed %d times of %d and is not dead: %+v", p.seq, was.Fails+1, most, is)
	}
	return nil
}

// endsAlone reports whether a job may end without a client: it has a limit of its own, or a policy's limit and no dead
// set, or is cancelled with a dependency.
func (m *model) endsAlone(p *promise) bool {
	if p.onBroken == core.BrokenDrops {
		return true
	}
	if p.limited || !p.finishes || p.own&limits != 0 && p.retries == 0 && !p.unknown {
		return p.limited
	}
	for _, past := range m.policies {
		if slices.ContainsFunc(past, func(o policyVersion) bool { return o.policy.Has&core.PolicyMaxAttempts != 0 }) {
			return true
		}
	}
	return false
}

// expiryOf returns when a new job expires; see core.JobPolicy.
func (w *world) expiryOf(j *core.Job) core.Instant {
	if o := w.model.inForce(j.Queue, core.PolicyExpiresIn); o != nil && j.ExpiresAt == 0 &&
		j.Own&core.PolicyExpiresIn == 0 && !j.Ephemeral {
		return max(w.clk.Now(), j.ReadyAt).Add(o.ExpiresIn)
	}
	return j.ExpiresAt
}

// losesNew reports whether a new job is in memory only, so a crash loses it: a policy says so, and no stored data waits
// for it or names it.
func (w *world) losesNew(op *core.Submit) bool {
	j := op.Job
	o := w.model.inForce(j.Queue, core.PolicyDurability)
	return o != nil && o.Unstored && !j.Ephemeral && op.Window == 0 && j.Batch == 0 && j.Parent == 0 &&
		len(j.After) == 0
}

// stores reports whether changes of a job are stored. A job in memory is stored once it moves to another queue.
func (w *world) stores(p *promise) bool {
	if p.lossy {
		i := w.look(p.seq)
		p.lossy = i == nil || i.Unstored
	}
	return !p.ephemeral && !p.lossy
}

// movedBy reports whether a policy or a rule may have moved a job to a queue.
func (m *model) movedBy(p *promise, queue string) bool {
	if m.spent.target[queue] {
		return true
	}
	if p.own&core.PolicyExhausted != 0 {
		return false
	}
	for _, past := range m.policies {
		if slices.ContainsFunc(past, func(o policyVersion) bool { return o.policy.MoveTo == queue }) {
			return true
		}
	}
	return false
}

// spentByCrash reports whether a crash has ended the last allowed lease of a job, held by a connection.
func (w *world) spentByCrash(was, is *core.JobInfo) bool {
	p := w.model.jobs[was.Seq]
	if stopsByCrash(was) && is.State == core.Done {
		return true
	}
	if p == nil || was.State != core.Leased || was.Worker != "" {
		return false
	}
	most := w.model.mostLeases(p, was.Queue)
	if o := w.model.inForce(was.Queue, core.PolicyMaxAttempts); most == 0 && o != nil && p.unknown {
		most = o.MaxAttempts
	}
	return most > 0 && was.Attempts-was.MovedAfter >= most &&
		(is.State == core.Dead || is.State == core.Done || w.model.movedBy(p, is.Queue))
}

// policiesAfterCrash checks that each policy is possible after the crash, and updates the model to it.
func (w *world) policiesAfterCrash(committed core.Commit) error {
	have := map[policyKey]core.JobPolicy{}
	for _, scope := range []core.PolicyScope{core.PolicyOfQueue, core.PolicyOfType} {
		for _, row := range w.ask(&core.ListPolicies{Scope: scope}).Policies {
			have[policyKey{scope, row.Name}] = row.JobPolicy
		}
	}
	for key, past := range w.model.policies {
		found := -1
		for k := len(past) - 1; k >= 0; k-- {
			if fmt.Sprint(past[k].policy) == fmt.Sprint(have[key]) {
				found = k
				break
			}
			if past[k].made <= committed {
				break
			}
		}
		if found < 0 && (len(have[key].Backoff.Spans) > 0 || have[key].Has != 0 || past[0].made <= committed) {
			return fmt.Errorf("the policy of %v was %+v, commit %d, and is %+v", key, past, committed, have[key])
		}
		w.model.policies[key] = []policyVersion{{policy: have[key], made: 1}}
	}
	return nil
}
