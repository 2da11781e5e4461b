package machine_test

import (
	"fmt"
	"strings"
	"time"

	"broker/core"
)

var policyScopes = map[string]core.PolicyScope{"": core.PolicyOfQueue, "type": core.PolicyOfType}

// policyOp reads the members of a policy: backoff=linear:2s:1m or backoff=spans:1s,5s, end=dead, drop or the name of a
// queue.
func (r *reader) policyOp(verb string, tag uint64) core.Op {
	scope := policyScopes[r.Option("scope")]
	if verb == "list-policies" {
		return &core.ListPolicies{
			Tag: tag, Scope: scope, Name: r.Option("name"), After: r.Option("after"), Limit: int(r.number("limit")),
		}
	}
	op := &core.PutPolicy{Tag: tag, Scope: scope, Name: r.Word(2), FromConfig: r.flag("from-config")}
	p := &op.Set
	for name, member := range map[string]core.PolicyFields{
		"max-attempts": core.PolicyMaxAttempts, "max-fails": core.PolicyMaxFails, "backoff": core.PolicyBackoff,
		"end": core.PolicyExhausted,
		"for": core.PolicyLeaseFor, "expires-in": core.PolicyExpiresIn, "retain-for": core.PolicyRetainFor,
		"unstored": core.PolicyDurability,
	} {
		switch r.Option(name) {
		case "":
		case "none":
			op.Remove |= member
		default:
			p.Has |= member
		}
	}
	if p.Has&core.PolicyMaxAttempts != 0 {
		p.MaxAttempts = r.count("max-attempts")
	}
	if p.Has&core.PolicyMaxFails != 0 {
		p.MaxFails = r.count("max-fails")
	}
	if p.Has&core.PolicyBackoff != 0 {
		p.Backoff = r.backoff()
	}
	if p.Has&core.PolicyLeaseFor != 0 {
		p.LeaseFor = r.span("for")
	}
	if p.Has&core.PolicyExpiresIn != 0 {
		p.ExpiresIn = r.span("expires-in")
	}
	if p.Has&core.PolicyRetainFor != 0 {
		p.RetainFor = r.span("retain-for")
	}
	p.Unstored = p.Has&core.PolicyDurability != 0
	switch end := r.Option("end"); end {
	case "", "none", "drop":
	case "dead":
		p.Exhausted = core.ExhaustedBury
	default:
		p.MoveTo = end
	}
	return op
}

func (r *reader) backoff() (rule core.BackoffRule) {
	kind, rest, _ := strings.Cut(r.Option("backoff"), ":")
	span := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		r.fail(err)
		return d
	}
	rule.Kind = map[string]core.BackoffKind{
		"constant": core.BackoffConstant, "linear": core.BackoffLinear, "exponential": core.BackoffExponential,
		"spans": core.BackoffSpans,
	}[kind]
	if rule.Kind == core.BackoffSpans {
		for text := range strings.SplitSeq(rest, ",") {
			rule.Spans = append(rule.Spans, span(text))
		}
		return rule
	}
	base, most, limited := strings.Cut(rest, ":")
	rule.Base = span(base)
	if limited {
		rule.Max = span(most)
	}
	return rule
}

// policies prints policies.
func policies(all []core.PolicyInfo) string {
	if len(all) == 0 {
		return "no policies"
	}
	var lines []string
	for _, p := range all {
		lines = append(lines, fmt.Sprintf(
			"%d %s has=%b attempts=%d fails=%d backoff=%+v end=%d %s for=%v expires=%v retain=%v configured=%v",
			p.Scope, p.Name,
			p.Has, p.MaxAttempts, p.MaxFails, p.Backoff, p.Exhausted, p.MoveTo, p.LeaseFor, p.ExpiresIn, p.RetainFor,
			p.FromConfig))
	}
	return strings.Join(lines, "\n")
}

// policy returns a random change of a policy.
func (l *history) policy() core.Op {
	op := &core.PutPolicy{
		Scope: core.PolicyScope(l.rng.IntN(2)), Name: l.queue(),
		Remove: core.PolicyFields(l.rng.IntN(core.AllPolicyFields + 1)),
	}
	op.Set = core.JobPolicy{
		Has: core.PolicyFields(l.rng.IntN(core.AllPolicyFields + 1)), MaxAttempts: uint32(l.rng.IntN(4)),
		MaxFails:  uint32(l.rng.IntN(4)),
		Exhausted: core.Exhausted(l.rng.IntN(2)), LeaseFor: l.span(), ExpiresIn: l.span(), RetainFor: l.span(),
		Backoff: core.BackoffRule{Kind: core.BackoffKind(l.rng.IntN(3)), Base: l.span(), Max: l.span(), Jitter: 0.5},
	}
	op.Set.Unstored = l.maybe(3)
	if l.maybe(2) {
		op.Set.MoveTo = l.queue()
	}
	return op
}
