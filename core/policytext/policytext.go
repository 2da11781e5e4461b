// Package policytext reads and writes policies of queues and types in the form of the API and the configuration.
package policytext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"broker/core"
)

// Policy is a core.JobPolicy in JSON. Members that are absent are not set.
type Policy struct {
	MaxFails    *uint32         `json:"max_fails,omitempty" maximum:"4294967295" doc:"failures after which there is no further try"`
	MaxAttempts *uint32         `json:"max_attempts,omitempty" maximum:"4294967295" doc:"leases after which the job has used them up"`
	LeaseForS   *float64        `json:"lease_for_s,omitempty" doc:"a worker's time to finish"`
	ExpiresInS  *float64        `json:"expires_in_s,omitempty" doc:"removed so long after it was submitted or due"`
	RetainForS  *float64        `json:"retain_for_s,omitempty" doc:"how long the outcome is kept after the end"`
	Backoff     json.RawMessage `json:"backoff,omitempty" doc:"waits after the first failure, the second and so on in seconds, the last one repeated; or {\"kind\": \"constant\", \"linear\" or \"exponential\", \"base_s\", \"max_s\", \"jitter\": 0 to 1}"`
	OnExhausted json.RawMessage `json:"on_exhausted,omitempty" doc:"after the last failure or lease: \"dead\", \"drop\", or {\"move\": queue}"`
	Durability  string          `json:"durability,omitempty" enum:"none" doc:"none: jobs are in memory only, and a crash or a restart loses them"`

	FromConfig bool `json:"from_config,omitempty" readOnly:"true" doc:"it stands in the configuration, and can be changed only there"`
}

// backoffJSON is a BackoffRule other than a list of spans.
type backoffJSON struct {
	Kind   string  `json:"kind"`
	BaseS  float64 `json:"base_s"`
	MaxS   float64 `json:"max_s,omitempty"`
	Jitter float64 `json:"jitter,omitempty"`
}

var backoffKinds = [...]string{
	core.BackoffConstant: "constant", core.BackoffLinear: "linear", core.BackoffExponential: "exponential",
}

// Error says which member is wrong.
type Error struct {
	Field  string // path of the member in the input
	Detail string // a sentence
}

func (e *Error) Error() string { return e.Detail }

func wrong(field, format string, args ...any) *Error {
	return &Error{Field: field, Detail: fmt.Sprintf(format, args...)}
}

// Parse reads the members of a policy; null removes a member. at is the path of the policy in the input. Errors are of
// type *Error.
func Parse(at string, text json.RawMessage) (set core.JobPolicy, remove core.PolicyFields, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil {
		return set, 0, wrong(at, "a policy is an object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := members[name]
		m, known := policyMembers[name]
		field := at + "." + name
		switch {
		case !known:
			return set, 0, wrong(field, "a policy has no member %s", name)
		case bytes.Equal(value, []byte("null")):
			remove |= m.is
			continue
		}
		if err := m.read(&set, field, value); err != nil {
			return set, 0, err
		}
		set.Has |= m.is
	}
	return set, remove, nil
}

// Check checks whether a policy that Parse has read may be that of a queue or type called name. at is as for Parse.
func Check(at string, scope core.PolicyScope, name string, set *core.JobPolicy) error {
	switch {
	case name == "" || len(name) > core.MaxQueueName:
		return wrong(at, "a policy needs the name of a queue or type, of at most %d bytes", core.MaxQueueName)
	case len(set.MoveTo) > core.MaxQueueName || scope == core.PolicyOfQueue && set.MoveTo == name:
		return wrong(at+".on_exhausted", "on_exhausted.move must name another queue, with at most %d bytes",
			core.MaxQueueName)
	}
	return nil
}

// policyMember is a member of a policy and the function that reads it.
type policyMember struct {
	is   core.PolicyFields
	read func(p *core.JobPolicy, field string, value json.RawMessage) error
}

var policyMembers = map[string]policyMember{
	"max_fails": {core.PolicyMaxFails, func(p *core.JobPolicy, field string, v json.RawMessage) error {
		return readNumber(&p.MaxFails, field, v)
	}},
	"max_attempts": {core.PolicyMaxAttempts, func(p *core.JobPolicy, field string, v json.RawMessage) error {
		return readNumber(&p.MaxAttempts, field, v)
	}},
	"lease_for_s": {core.PolicyLeaseFor, func(p *core.JobPolicy, field string, v json.RawMessage) error {
		return readSpan(&p.LeaseFor, field, v)
	}},
	"expires_in_s": {core.PolicyExpiresIn, func(p *core.JobPolicy, field string, v json.RawMessage) error {
		return readSpan(&p.ExpiresIn, field, v)
	}},
	"retain_for_s": {core.PolicyRetainFor, func(p *core.JobPolicy, field string, v json.RawMessage) error {
		return readSpan(&p.RetainFor, field, v)
	}},
	"backoff":      {core.PolicyBackoff, readBackoff},
	"on_exhausted": {core.PolicyExhausted, readOnExhausted},
	"durability":   {core.PolicyDurability, readDurability},
}

// memberOf returns the last part of the path of a field.
func memberOf(field string) string { return field[strings.LastIndexByte(field, '.')+1:] }

func readNumber(into *uint32, field string, value json.RawMessage) error {
	if json.Unmarshal(value, into) != nil {
		return wrong(field, "%s must be a number between 0 and 4294967295, or null", memberOf(field))
	}
	return nil
}

func readSpan(into *time.Duration, field string, value json.RawMessage) (err error) {
	var seconds float64
	if json.Unmarshal(value, &seconds) != nil || seconds <= 0 {
		return wrong(field, "%s must be a positive number of seconds, or null", memberOf(field))
	}
	*into, err = span(field, seconds)
	return err
}

// span converts a number of seconds, which may be zero, to a duration.
func span(field string, seconds float64) (time.Duration, error) {
	if !(seconds >= 0 && seconds <= core.MaxBackoff.Seconds()) {
		return 0, wrong(field, "%s must be a number of seconds between 0 and %.0f", memberOf(field),
			core.MaxBackoff.Seconds())
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// strict reads an object and refuses unknown members.
func strict(value json.RawMessage, into any) bool {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	return d.Decode(into) == nil
}

func readBackoff(p *core.JobPolicy, field string, value json.RawMessage) (err error) {
	var spans []float64
	if json.Unmarshal(value, &spans) == nil {
		p.Backoff.Kind = core.BackoffSpans
		for i, seconds := range spans {
			d, err := span(fmt.Sprintf("%s[%d]", field, i), seconds)
			if err != nil {
				return err
			}
			p.Backoff.Spans = append(p.Backoff.Spans, d)
		}
		return validBackoff(p, field)
	}
	var rule backoffJSON
	known := strict(value, &rule)
	if known {
		known = false
		for kind, name := range backoffKinds {
			if name == rule.Kind {
				p.Backoff.Kind, known = core.BackoffKind(kind), true
			}
		}
	}
	if !known {
		return wrong(field,
			"backoff must be a list of seconds, or an object with kind constant, linear or exponential, base_s, max_s and jitter")
	}
	if p.Backoff.Base, err = span(field+".base_s", rule.BaseS); err != nil {
		return err
	}
	if p.Backoff.Max, err = span(field+".max_s", rule.MaxS); err != nil {
		return err
	}
	p.Backoff.Jitter = rule.Jitter
	return validBackoff(p, field)
}

func validBackoff(p *core.JobPolicy, field string) error {
	if !p.Backoff.Valid() {
		return wrong(field, "a backoff has 1 to %d waits of at most ten years, and jitter between 0 and 1",
			core.MaxBackoffSpans)
	}
	return nil
}

func readOnExhausted(p *core.JobPolicy, field string, value json.RawMessage) error {
	var word string
	var move struct {
		Move string `json:"move"`
	}
	switch {
	case json.Unmarshal(value, &word) == nil && word == "dead":
		p.Exhausted = core.ExhaustedBury
	case word == "drop":
		p.Exhausted = core.ExhaustedFinish
	case word == "" && strict(value, &move) && move.Move != "":
		p.MoveTo = move.Move
	default:
		return wrong(field, `on_exhausted must be "dead", "drop" or {"move": queue}`)
	}
	return nil
}

func readDurability(p *core.JobPolicy, field string, value json.RawMessage) error {
	var word string
	if json.Unmarshal(value, &word) != nil || word != none {
		return wrong(field,
			`durability must be "none", or null: jobs are as durable as the broker's setting durability says`)
	}
	p.Unstored = true
	return nil
}

// none is the durability of jobs that are kept in memory only.
const none = "none"

// Show converts a policy to its JSON form.
func Show(p *core.PolicyInfo) *Policy {
	v := &Policy{FromConfig: p.FromConfig}
	number := func(is core.PolicyFields, n uint32) *uint32 {
		if p.Has&is == 0 {
			return nil
		}
		return &n
	}
	seconds := func(is core.PolicyFields, d time.Duration) *float64 {
		if p.Has&is == 0 {
			return nil
		}
		s := d.Seconds()
		return &s
	}
	v.MaxFails, v.MaxAttempts = number(core.PolicyMaxFails, p.MaxFails), number(core.PolicyMaxAttempts, p.MaxAttempts)
	v.LeaseForS, v.ExpiresInS = seconds(core.PolicyLeaseFor, p.LeaseFor), seconds(core.PolicyExpiresIn, p.ExpiresIn)
	v.RetainForS = seconds(core.PolicyRetainFor, p.RetainFor)
	if p.Has&core.PolicyDurability != 0 && p.Unstored {
		v.Durability = none
	}
	if p.Has&core.PolicyBackoff != 0 {
		v.Backoff = showBackoff(&p.Backoff)
	}
	if p.Has&core.PolicyExhausted != 0 {
		switch {
		case p.MoveTo != "":
			v.OnExhausted = encode(map[string]string{"move": strings.ToValidUTF8(p.MoveTo, "\uFFFD")})
		case p.Exhausted == core.ExhaustedBury:
			v.OnExhausted = encode("dead")
		default:
			v.OnExhausted = encode("drop")
		}
	}
	return v
}

func showBackoff(r *core.BackoffRule) json.RawMessage {
	if r.Kind == core.BackoffSpans {
		spans := make([]float64, len(r.Spans))
		for i, d := range r.Spans {
			spans[i] = d.Seconds()
		}
		return encode(spans)
	}
	return encode(backoffJSON{backoffKinds[r.Kind], r.Base.Seconds(), r.Max.Seconds(), r.Jitter})
}

// encode returns a value in JSON; a value that cannot be encoded is a bug.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("policytext: a policy cannot be encoded: " + err.Error())
	}
	return b
}
