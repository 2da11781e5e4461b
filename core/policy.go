package core

import (
	"math"
	"time"
)

// JobPolicy replaces protocol defaults for the jobs of a queue or type. It applies to fields that the client has not
// chosen itself (Job.Own). For each field, the policy of the type overrides the policy of the queue. ExpiresIn,
// RetainFor and Unstored are read when a job is submitted. All other fields are read when they are needed, so changes
// apply to waiting jobs too. No policy applies to ephemeral jobs.
type JobPolicy struct {
	Has PolicyFields // the fields that are set

	MaxAttempts uint32 // like MaxFails, for jobs that set neither of the two
	MaxFails    uint32
	Backoff     BackoffRule // between a failure and the next try
	Exhausted   Exhausted   // what happens to a job that has used up its attempts or failures; ignored with MoveTo
	// with PolicyExhausted: the queue to which such a job moves instead; its counts restart at zero
	MoveTo    string
	LeaseFor  time.Duration // for jobs without Job.LeaseFor
	ExpiresIn time.Duration // for jobs without Job.ExpiresAt
	RetainFor time.Duration // for jobs without Job.RetainFor and Job.RetainUntil

	// Unstored (PolicyDurability) keeps the jobs in memory only: their changes do not wait for the disk, and a crash or
	// restart loses them. A job is stored nevertheless if it depends on other jobs, is in a batch, is submitted with
	// Submit.Window, Submit.Meta or in an Atomic, or moves to a queue without Unstored.
	Unstored bool
}

// PolicyFields is a set of fields of a policy. Stored; never renumbered.
type PolicyFields uint8

// The fields. Jobs may set the fields in JobFields themselves; PolicyExpiresIn and PolicyRetainFor only matter when a
// job is submitted, for zero values that the client has chosen.
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
	JobFields       = PolicyDurability - 1
)

// BackoffRule is a delay that depends on how often a job has failed.
type BackoffRule struct {
	Kind  BackoffKind
	Base  time.Duration   // after the first failure
	Max   time.Duration   // zero: no limit
	Spans []time.Duration // BackoffSpans: after the first failure, the second, and so on; the last one is repeated

	// Jitter, from 0 to 1, is the random share of the delay: the delay is shortened by up to this share.
	Jitter float64
}

// BackoffKind says how a delay grows. Stored; never renumbered.
type BackoffKind uint8

// BackoffConstant: Base. BackoffLinear: Base times the number of failures. BackoffExponential: Base, doubled with each
// failure.
const (
	BackoffConstant BackoffKind = iota
	BackoffLinear
	BackoffExponential
	BackoffSpans
)

// MaxBackoff is the longest delay, MaxBackoffSpans the maximum number of Spans.
const (
	MaxBackoff      = 10 * 365 * 24 * time.Hour
	MaxBackoffSpans = 100
)

// After returns the delay after a number of failures; random is in [0, 1).
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
	if r.Kind > BackoffSpans || !(r.Jitter >= 0 && r.Jitter <= 1) || len(r.Spans) > MaxBackoffSpans ||
		(r.Kind == BackoffSpans) != (len(r.Spans) > 0) {
		return false
	}
	for _, d := range append([]time.Duration{r.Base, r.Max}, r.Spans...) {
		if d < 0 || d > MaxBackoff {
			return false
		}
	}
	return true
}

// With returns the policy with the fields of other set and the fields of remove cleared.
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

// PolicyScope says which jobs a policy applies to. On disk; never renumbered.
type PolicyScope uint8

// PolicyOfQueue: the jobs of a queue, which need not exist. PolicyOfType: the jobs of a type.
const (
	PolicyOfQueue PolicyScope = iota
	PolicyOfType
)

// PutPolicy changes the policy of a queue or type: fields of Set replace existing ones, fields of Remove are cleared.
// Reply: Accepted, or Failed with ErrInvalid (the text says why), ErrFull (there are MaxPolicies), or ErrConfigured
// (the policy is the configuration's, and FromConfig is not set).
type PutPolicy struct {
	changing
	Tag    uint64
	Scope  PolicyScope
	Name   string
	Set    JobPolicy
	Remove PolicyFields
	// set by the configuration file at each start, not stored; only operations with FromConfig change it
	FromConfig bool
}

// ListPolicies lists the policies of Scope in byte order of their names, starting after After, at most Limit (zero:
// all). With a Name, it lists only the policy of that name. Reply: Answered with Policies.
type ListPolicies struct {
	reading
	Tag   uint64
	Scope PolicyScope
	Name  string
	After string
	Limit int
}

// PolicyInfo is a policy with the queue or type it belongs to.
type PolicyInfo struct {
	Scope PolicyScope
	Name  string
	JobPolicy
	FromConfig bool
}

// MaxPolicies is the maximum number of policies of each scope.
const MaxPolicies = 10_000

// TagOf implements Op.
func (o *PutPolicy) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *ListPolicies) TagOf() uint64 { return o.Tag }

// The failure of a job that has used up its attempts without being done, if a policy says what happens then.
const (
	AttemptsUsedUp        = "AttemptsUsedUp"
	AttemptsUsedUpMessage = "%d leases ended without success"
)
