package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/table"
)

// Policies of queues and types stand in for what jobs do not say themselves. They are looked up when they are needed, so that a job
// takes no memory for them; jobQueue.policy is that of its queue.

// jobPolicy is a policy, and where it comes from.
type jobPolicy struct {
	core.JobPolicy
	fromConfig bool
	stored     bool // it has a meta entry
}

// policies are all policies of both scopes, by name.
type policies [core.PolicyOfType + 1]map[string]*jobPolicy

// policyNames begin the names of the meta entries. They are on disk and never change.
var policyNames = [...]string{core.PolicyOfQueue: jobPolicyPrefix + "queue/", core.PolicyOfType: jobPolicyPrefix + "type/"}

const jobPolicyPrefix = "core/policy/"

// none reports whether there are no policies at all.
func (p *policies) none() bool { return len(p[core.PolicyOfQueue])+len(p[core.PolicyOfType]) == 0 }

// policyOn is the policy that says a member for a job; nil: none does.
func (m *Machine) policyOn(e *table.Entry, member core.PolicyFields) *core.JobPolicy {
	if m.policies.none() {
		return nil
	}
	return m.policyFor(e, member)
}

func (m *Machine) policyFor(e *table.Entry, member core.PolicyFields) *core.JobPolicy {
	q, types := m.queues[e.Queue].rules, m.policies[core.PolicyOfType]
	if q == nil && len(types) == 0 || e.Has(table.Ephemeral) {
		return nil
	}
	return firstWith(types, m.table.TypeOf(e), q, member)
}

// firstWith is the policy of a type, or else of a queue, that has a member.
func firstWith(types map[string]*jobPolicy, typ string, queue *jobPolicy, member core.PolicyFields) *core.JobPolicy {
	for _, p := range [...]*jobPolicy{types[typ], queue} {
		if p != nil && p.Has&member != 0 {
			return &p.JobPolicy
		}
	}
	return nil
}

// ownLimits are those of which one says that the job itself has a limit, so that no policy has one for it.
const ownLimits = core.PolicyMaxAttempts | core.PolicyMaxFails

// maxAttempts is how many leases a job has; zero: no limit.
func (m *Machine) maxAttempts(e *table.Entry) uint32 {
	if m.limitedByPolicy(e) {
		return m.policyOn(e, core.PolicyMaxAttempts).MaxAttempts
	}
	return e.MaxAttempts
}

// maxFails is how many failures a job may have, at least one.
func (m *Machine) maxFails(e *table.Entry) uint32 {
	if p := m.policyOn(e, core.PolicyMaxFails); p != nil && !e.Own(ownLimits) {
		return max(p.MaxFails, 1)
	}
	return max(e.MaxFails, 1)
}

// leaseFor is the length of a job's leases in milliseconds; zero: nothing says it.
func (m *Machine) leaseFor(e *table.Entry) uint32 {
	if p := m.policyOn(e, core.PolicyLeaseFor); p != nil && !e.Own(core.PolicyLeaseFor) {
		return table.Millis(p.LeaseFor)
	}
	return e.LeaseFor
}

// atEnd is what happens to a job that has used up its leases or failures.
type atEnd struct {
	exhausted core.Exhausted
	moveTo    string // not empty: it moves there
	byPolicy  bool
}

func (m *Machine) atEnd(e *table.Entry) atEnd {
	p := m.policyOn(e, core.PolicyExhausted)
	if p == nil || e.Own(core.PolicyExhausted) {
		return atEnd{exhausted: e.Exhausted}
	}
	if p.MoveTo == m.queues[e.Queue].Name { // of a type: the job has been there
		return atEnd{exhausted: core.ExhaustedBury, byPolicy: true}
	}
	return atEnd{exhausted: p.Exhausted, moveTo: p.MoveTo, byPolicy: true}
}

// usedUp reports whether a job has had all its leases.
func (m *Machine) usedUp(e *table.Entry) bool {
	if e.Attempts == 0 {
		return false
	}
	most := m.maxAttempts(e)
	return most > 0 && e.Attempts >= most
}

// endUsedUp ends a detached job that has had all its leases.
func (m *Machine) endUsedUp(h uint32, e *table.Entry) {
	end := m.atEnd(e)
	why := fmt.Sprintf(core.AttemptsUsedUpMessage, e.Attempts)
	switch {
	case e.Has(table.Rerun) || !end.byPolicy && !m.limitedByPolicy(e) || end.exhausted == core.ExhaustedFinish && end.moveTo == "":
		m.recordRunEnd(h, e, core.EventFailed, "no attempts left")
		m.finishFailed(h, &core.Outcome{Cause: core.LeaseRanOut})
	case end.moveTo != "":
		m.moveAway(h, e, end.moveTo, why)
	default:
		m.failJob(h, e.HolderFrom, &core.Failure{Type: core.AttemptsUsedUp, Message: why}, afterFail{final: true, bury: true})
	}
}

// spent reports whether a policy that was set meanwhile gives a ready job no further lease.
func (m *Machine) spent(e *table.Entry) bool { return m.limitedByPolicy(e) && m.usedUp(e) }

// limitedByPolicy reports whether a policy says how many leases a job has.
func (m *Machine) limitedByPolicy(e *table.Entry) bool {
	return !e.Own(ownLimits) && m.policyOn(e, core.PolicyMaxAttempts) != nil
}

// unfit reports whether a ready job must not be handed out.
func (m *Machine) unfit(h uint32) bool {
	e := m.table.At(h)
	return e.Has(table.HasOptional) && m.stale(h) || e.Attempts > 0 && m.spent(e)
}

// dropUnfit removes a job that is unfit from its queue.
func (m *Machine) dropUnfit(h uint32) {
	if m.stale(h) {
		m.expire(h)
		return
	}
	e := m.table.At(h)
	m.detach(h, e)
	m.endUsedUp(h, e)
}

// failureText is a failure in one line.
func failureText(f *core.Failure) string {
	if f.Type == "" || f.Message == "" {
		return f.Type + f.Message
	}
	return f.Type + ": " + f.Message
}

// moveAway moves a detached job to the queue for those that have used up their leases or failures. It starts there as new. Its
// payload may be on disk only: the status names the queue.
func (m *Machine) moveAway(h uint32, e *table.Entry, to, why string) {
	from, typ := e.Queue, m.table.TypeOf(e)
	if typ == m.queues[from].Name {
		typ = to
	}
	m.unlink(h)
	m.table.ForgetProgress(h, e)
	m.limits.LeaveLane(h)
	m.limits.LeaveOrder(h, e)
	m.move(e, core.Gone) // it leaves the counters of one queue and enters those of another
	if n := m.table.QueueNumber(to); n != 0 && e.Unique != (table.Digest{}) && m.holderOf(n, e.Unique) != 0 {
		m.table.FreeUnique(h, e) // another job has the key there
		e.Set(table.Unlocked)
	}
	n, q := m.enterQueue(to, e.Origin, false)
	e.Queue = n
	m.dropType(e)
	m.table.SetType(e, typ)
	if j := m.table.Payload(h); j != nil { // others may be reading it
		moved := *j
		moved.InQueue(q.Name)
		m.table.SetPayload(h, &moved)
	}
	m.limits.JoinQueue(h, e, typ)
	e.Words |= table.Rehomed
	m.storeFor(h, e, q.Name, typ)
	m.table.SetFirstFail(h, e, 0)
	e.Attempts, e.Fails, e.LostLeases = 0, 0, 0
	if e.Has(table.HasTransient) {
		m.table.Transient(h).Failure = nil
		m.table.DropCollected(m.table.Transient(h))
	}
	e.Epoch++
	e.ReadyAt, e.LeasedAt = m.table.Now, 0
	e.Clear(table.ScheduledOrder | table.Requeued | table.FailureStored)
	e.Set(table.Changed)
	m.addEntry(m.actor, h, e, core.TimelineEntry{
		Kind: core.EventMoved, Detail: m.queues[from].Name, Queue: q.Name, Text: core.CutText(why, core.MaxTimelineText),
	})
	m.emit(h, e, core.EventMoved, m.queues[from].Name)
	m.table.Touch(h, e)
	m.schedule(h, e)
	m.dropIdle(from)
}

// applyToSubmission adds to a new job what policies say about its end.
func (m *Machine) applyToSubmission(j *core.Job) {
	if m.policies.none() || j.Ephemeral {
		return
	}
	types, queue := m.policies[core.PolicyOfType], m.policies[core.PolicyOfQueue][j.Queue]
	typ := cmp.Or(j.Type, j.Queue)
	if p := firstWith(types, typ, queue, core.PolicyExpiresIn); p != nil && j.ExpiresAt == 0 {
		j.ExpiresAt = max(m.table.Now, j.ReadyAt).Add(p.ExpiresIn)
	}
	if p := firstWith(types, typ, queue, core.PolicyRetainFor); p != nil && !j.Kept() {
		j.RetainFor = p.RetainFor
	}
}

// putPolicy is PutPolicy.
func (m *Machine) putPolicy(c *client, op *core.PutPolicy) {
	if op.Scope > core.PolicyOfType {
		m.failed(c, op.Tag, fmt.Errorf("%w: unknown scope", core.ErrInvalid))
		return
	}
	all := m.policies[op.Scope]
	before := all[op.Name]
	if err := m.policyRefusal(op, before); err != nil {
		m.refusedAt(c, op.Tag, err, m.table.MetaCommit())
		return
	}
	p := &jobPolicy{fromConfig: op.FromConfig}
	if before != nil {
		p.JobPolicy, p.stored = before.JobPolicy, before.stored
	}
	set := op.Set
	set.Backoff.Spans = slices.Clone(set.Backoff.Spans)
	set.MoveTo = strings.Clone(set.MoveTo)
	p.JobPolicy = p.With(&set, op.Remove)
	name := strings.Clone(op.Name)
	commit := core.Commit(0)
	if !p.fromConfig || p.stored {
		m.storeJobPolicy(op.Scope, name, p)
		commit = m.table.Promise()
	}
	m.applyJobPolicy(op.Scope, name, p)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: commit})
}

// policyRefusal is why a policy is refused.
func (m *Machine) policyRefusal(op *core.PutPolicy, before *jobPolicy) error {
	wrong := func(what string) error { return fmt.Errorf("%w: %s", core.ErrInvalid, what) }
	p := &op.Set
	switch {
	case op.Name == "" || len(op.Name) > core.MaxQueueName || len(p.MoveTo) > core.MaxQueueName:
		return wrong("a policy needs the name of a queue or type; names are bounded")
	case !p.Backoff.Valid():
		return wrong("a backoff has a known kind, spans of at most ten years, and jitter between 0 and 1")
	case p.Exhausted > core.ExhaustedBury:
		return wrong("unknown end of a job")
	case op.Scope == core.PolicyOfQueue && p.MoveTo == op.Name:
		return wrong("a job cannot move to the queue that it is in")
	case p.LeaseFor < 0, p.ExpiresIn < 0, p.RetainFor < 0:
		return wrong("a time is not negative")
	case before != nil && before.fromConfig && !op.FromConfig:
		return core.ErrConfigured
	case before == nil && len(m.policies[op.Scope]) >= core.MaxPolicies:
		return core.ErrFull
	}
	return nil
}

// applyJobPolicy puts a policy in force; one without members is forgotten.
func (m *Machine) applyJobPolicy(scope core.PolicyScope, name string, p *jobPolicy) {
	if p.Has == 0 {
		p = nil
		delete(m.policies[scope], name)
	} else {
		m.policies[scope][name] = p
	}
	if n := m.table.QueueNumber(name); n != 0 && scope == core.PolicyOfQueue {
		m.queues[n].rules = p
	}
}

// storeJobPolicy stores a policy with the open batch, or removes it from the store.
func (m *Machine) storeJobPolicy(scope core.PolicyScope, name string, p *jobPolicy) {
	entry := core.MetaEntry{Name: policyNames[scope] + name}
	if p.stored = !p.fromConfig && p.Has != 0; p.stored {
		entry.Value = table.Encode(p.JobPolicy)
	}
	m.table.LogMeta(entry)
}

// restoreJobPolicy restores a policy.
func (m *Machine) restoreJobPolicy(name string, value []byte) error {
	for scope, prefix := range policyNames {
		of, is := strings.CutPrefix(name, prefix)
		if !is || of == "" {
			continue
		}
		p := &jobPolicy{stored: true}
		if err := json.Unmarshal(value, &p.JobPolicy); err != nil {
			return err
		}
		if !p.Backoff.Valid() {
			return errors.New("a policy with an unknown backoff")
		}
		m.applyJobPolicy(core.PolicyScope(scope), of, p) //nolint:gosec // two scopes
		return nil
	}
	return errors.New("a policy of nothing")
}

// listPolicies is ListPolicies.
func (m *Machine) listPolicies(c *client, op *core.ListPolicies) {
	answer := &core.Answer{Policies: []core.PolicyInfo{}}
	if op.Scope <= core.PolicyOfType {
		all := m.policies[op.Scope]
		names := []string{op.Name}
		if op.Name == "" {
			names = slices.Sorted(maps.Keys(all))
		}
		for _, name := range names {
			p := all[name]
			if p == nil || name <= op.After {
				continue
			}
			if op.Limit > 0 && len(answer.Policies) == op.Limit {
				break
			}
			row := core.PolicyInfo{Scope: op.Scope, Name: name, JobPolicy: p.JobPolicy, FromConfig: p.fromConfig}
			row.Backoff.Spans = slices.Clone(row.Backoff.Spans)
			answer.Policies = append(answer.Policies, row)
		}
	}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(), Answer: answer})
}
