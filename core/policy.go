package core

import (
	"math"
	"time"
)

// JobPolicy is what applies to the jobs of a queue or type that do not say it themselves (Job.Own), in place of the defaults of
// their protocol. That of the type goes before that of the queue, member by member. ExpiresIn, RetainFor and Unstored are looked
// at when a job is submitted, all others when they are needed, so that a change applies to jobs that wait. No policy applies to ephemeral
// jobs.
type JobPolicy struct {
	Has PolicyFields // the members that are set

	MaxAttempts uint32        // with MaxFails: for jobs that say neither themselves
	MaxFails    uint32        //
	Backoff     BackoffRule   // between a failure and the next try
	Exhausted   Exhausted     // without MoveTo: what happens to a job that has used up its attempts or failures
	MoveTo      string        // PolicyExhausted: the queue to which it moves instead, with counts of zero
	LeaseFor    time.Duration // for jobs without Job.LeaseFor
	ExpiresIn   time.Duration // for jobs without Job.ExpiresAt
	RetainFor   time.Duration // for jobs without Job.RetainFor and Job.RetainUntil

	// Unstored (PolicyDurability) keeps the jobs in memory only, so that no change of them waits for the disk; a crash and a restart lose
	// them. Jobs are stored all the same if they depend on others, are in a batch, or come with Submit.Window, Submit.Meta or in a list of Atomic, and from
	// their move to a queue without this on.
	Unstored bool
}

// PolicyFields is a set of members of a policy. Stored; never renumbered.
type PolicyFields uint8

// The members. Jobs may say those of JobFields themselves.
const (
	PolicyMaxAttempts PolicyFields = 1 << iota
	PolicyMaxFails
	PolicyBackoff
	PolicyExhausted
	PolicyLeaseFor
	PolicyExpiresIn
	PolicyRetainFor
	PolicyDurability

	AllPolicyFields = 1<<iota - 1
	JobFields       = PolicyExpiresIn - 1
)

// BackoffRule is a delay that depends on how often a job has failed.
type BackoffRule struct {
	Kind  BackoffKind
	Base  time.Duration   // after the first failure
	Max   time.Duration   // zero: no limit
	Spans []time.Duration // BackoffSpans: after the first failure, the second, and so on; the last one is repeated

	// Jitter, from 0 to 1, is the part of the delay that is random: it is shorter by up to so much.
	Jitter float64
}

// BackoffKind is how a delay grows. Stored; never renumbered.
type BackoffKind uint8

// BackoffConstant: Base. BackoffLinear: Base times the number of failures. BackoffExponential: Base, doubled with each failure.
const (
	BackoffConstant BackoffKind = iota
	BackoffLinear
	BackoffExponential
	BackoffSpans
)

// MaxBackoff is the longest delay, MaxBackoffSpans the greatest number of Spans.
const (
	MaxBackoff      = 10 * 365 * 24 * time.Hour
	MaxBackoffSpans = 100
)

// After is the delay after so many failures; random is from 0 up to 1.
func (r *BackoffRule) After(fails uint32, random float64) time.Duration {
	n, d := float64(max(fails, 1)), float64(r.Base)
	switch r.Kind {
	case BackoffConstant:
	case BackoffLinear:
		d *= n
	case BackoffExponential:
		d *= math.Exp2(min(n-1, 100))
	case BackoffSpans:
		d = 0
		if len(r.Spans) > 0 {
			d = float64(r.Spans[min(int(n), len(r.Spans))-1])
		}
	}
	if r.Max > 0 {
		d = min(d, float64(r.Max))
	}
	return time.Duration(min(d, float64(MaxBackoff)) * (1 - r.Jitter*random))
}

// Valid reports whether a policy may have this rule.
func (r *BackoffRule) Valid() bool {
	if r.Kind > BackoffSpans || !(r.Jitter >= 0 && r.Jitter <= 1) || len(r.Spans) > MaxBackoffSpans || (r.Kind == BackoffSpans) != (len(r.Spans) > 0) {
		return false
	}
	for _, d := range append([]time.Duration{r.Base, r.Max}, r.Spans...) {
		if d < 0 || d > MaxBackoff {
			return false
		}
	}
	return true
}

// With is the policy with the members of other in place of its own, and without those of remove.
func (p JobPolicy) With(other *JobPolicy, remove PolicyFields) JobPolicy {
	for _, s := range []struct {
		of     PolicyFields
		assign func(to, from *JobPolicy)
	}{
		{PolicyMaxAttempts, func(to, from *JobPolicy) { to.MaxAttempts = from.MaxAttempts }},
		{PolicyMaxFails, func(to, from *JobPolicy) { to.MaxFails = from.MaxFails }},
		{PolicyBackoff, func(to, from *JobPolicy) { to.Backoff = from.Backoff }},
		{PolicyExhausted, func(to, from *JobPolicy) { to.Exhausted, to.MoveTo = from.Exhausted, from.MoveTo }},
		{PolicyLeaseFor, func(to, from *JobPolicy) { to.LeaseFor = from.LeaseFor }},
		{PolicyExpiresIn, func(to, from *JobPolicy) { to.ExpiresIn = from.ExpiresIn }},
		{PolicyRetainFor, func(to, from *JobPolicy) { to.RetainFor = from.RetainFor }},
		{PolicyDurability, func(to, from *JobPolicy) { to.Unstored = from.Unstored }},
	} {
		switch {
		case other.Has&s.of != 0:
			s.assign(&p, other)
			p.Has |= s.of
		case remove&s.of != 0:
			s.assign(&p, &JobPolicy{})
			p.Has &^= s.of
		}
	}
	return p
}

// PolicyScope says whose jobs a policy is for. On disk; never renumbered.
type PolicyScope uint8

// PolicyOfQueue: the jobs of a queue, which need not exist. PolicyOfType: the jobs of a type.
const (
	PolicyOfQueue PolicyScope = iota
	PolicyOfType
)

// PutPolicy changes the policy of a queue or type: members of Set replace those that are there, those of Remove go away. Reply:
// Accepted, or Failed with ErrInvalid (the text says why), ErrFull (there are MaxPolicies), or ErrConfigured (the policy is the
// configuration's, and FromConfig is not set).
type PutPolicy struct {
	changing
	Tag        uint64
	Scope      PolicyScope
	Name       string
	Set        JobPolicy
	Remove     PolicyFields
	FromConfig bool // the configuration file sets it at each start; it is not stored, and only such operations change it
}

// ListPolicies lists policies in byte order of their names: those of Scope behind After, at most Limit (zero: all), or with a
// Name the one of that name, if there is one. Reply: Answered with Policies.
type ListPolicies struct {
	reading
	Tag   uint64
	Scope PolicyScope
	Name  string
	After string
	Limit int
}

// PolicyInfo is a policy and whose it is.
type PolicyInfo struct {
	Scope PolicyScope
	Name  string
	JobPolicy
	FromConfig bool
}

// MaxPolicies is the greatest number of policies of each scope.
const MaxPolicies = 10_000

// TagOf implements Op.
func (o *PutPolicy) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *ListPolicies) TagOf() uint64 { return o.Tag }

// The failure of a job that was leased too often without being done, if a policy says what happens then.
const (
	AttemptsUsedUp        = "AttemptsUsedUp"
	AttemptsUsedUpMessage = "%d leases ended without success"
)
