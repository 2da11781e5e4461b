package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"broker/core"
)

// Policy is a core.JobPolicy in JSON. Members that are absent are not set.
type Policy struct {
	MaxFails    *uint32         `json:"max_fails,omitempty" unit:"count" maximum:"4294967295" label:"Most failures" doc:"failures after which there is no further try"`
	MaxAttempts *uint32         `json:"max_attempts,omitempty" unit:"count" maximum:"4294967295" label:"Most starts" doc:"leases after which the job has used them up"`
	Backoff     json.RawMessage `json:"backoff,omitempty" unit:"waits" label:"Waits between tries" doc:"waits after the first failure, the second and so on in seconds, the last one repeated; or {\"kind\": \"constant\", \"linear\" or \"exponential\", \"base_s\", \"max_s\", \"jitter\": 0 to 1}"`
	OnExhausted json.RawMessage `json:"on_exhausted,omitempty" unit:"ending" label:"After the last one" doc:"after the last failure or lease: \"dead\", \"drop\", or {\"move\": queue}"`
	LeaseForS   *float64        `json:"lease_for_s,omitempty" unit:"seconds" exclusiveMinimum:"0" maximum:"315360000" label:"Time to finish" doc:"a worker's time to finish"`
	ExpiresInS  *float64        `json:"expires_in_s,omitempty" unit:"seconds" exclusiveMinimum:"0" maximum:"315360000" label:"Expires after" doc:"removed so long after it was submitted or due"`
	RetainForS  *float64        `json:"retain_for_s,omitempty" unit:"seconds" exclusiveMinimum:"0" maximum:"315360000" label:"Outcome is kept" doc:"how long the outcome is kept after the end"`
	Durability  string          `json:"durability,omitempty" unit:"word" enum:"none" label:"Durability" doc:"none: jobs are in memory only, and a crash or a restart loses them"`

	FromConfig bool `json:"from_config,omitempty" readOnly:"true" doc:"it stands in the configuration, and can be changed only there"`
}

// PolicyRows are the settings of a policy, in the order in which they are shown.
var PolicyRows = rowsOf[Policy]()

// policyFields are the fields of a core.JobPolicy that belong to PolicyRows.
var policyFields = map[string]struct {
	is     core.PolicyFields
	number func(*core.JobPolicy) *uint32
	span   func(*core.JobPolicy) *time.Duration
}{
	"max_fails":    {is: core.PolicyMaxFails, number: func(p *core.JobPolicy) *uint32 { return &p.MaxFails }},
	"max_attempts": {is: core.PolicyMaxAttempts, number: func(p *core.JobPolicy) *uint32 { return &p.MaxAttempts }},
	"backoff":      {is: core.PolicyBackoff},
	"on_exhausted": {is: core.PolicyExhausted},
	"lease_for_s":  {is: core.PolicyLeaseFor, span: func(p *core.JobPolicy) *time.Duration { return &p.LeaseFor }},
	"expires_in_s": {is: core.PolicyExpiresIn, span: func(p *core.JobPolicy) *time.Duration { return &p.ExpiresIn }},
	"retain_for_s": {is: core.PolicyRetainFor, span: func(p *core.JobPolicy) *time.Duration { return &p.RetainFor }},
	"durability":   {is: core.PolicyDurability},
}

// ParsePolicy reads the members of a policy; null removes a member. at is the path of the policy in the input. Errors
// are of type *Error.
func ParsePolicy(at string, text json.RawMessage) (set core.JobPolicy, remove core.PolicyFields, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil {
		return set, 0, wrong(at, "a policy is an object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value, field, row := members[name], memberOf(at, name), find(PolicyRows, name)
		f := policyFields[name]
		var n float64
		switch {
		case row == nil:
			return set, 0, wrong(field, "a policy has no member %s", name)
		case bytes.Equal(value, []byte("null")):
			remove |= f.is
			continue
		case row.Unit == Waits:
			set.Backoff, err = readBackoff(field, value)
		case row.Unit == Ending:
			var end Exhausted
			end, err = readExhausted(field, value)
			set.Exhausted, set.MoveTo = end.Then, end.MoveTo
		case row.Unit == Word:
			set.Unstored, err = true, durability(field, value)
		case f.number != nil:
			n, err = row.number(field, value)
			*f.number(&set) = uint32(n)
		default:
			n, err = row.number(field, value)
			*f.span(&set) = durationOf(n)
		}
		if err != nil {
			return set, 0, err
		}
		set.Has |= f.is
	}
	return set, remove, nil
}

// CheckPolicy checks whether a policy that ParsePolicy has read may be that of a queue or type called name. at is as
// for ParsePolicy.
func CheckPolicy(at string, scope core.PolicyScope, name string, set *core.JobPolicy) error {
	switch {
	case name == "" || len(name) > core.MaxQueueName:
		return wrong(at, "a policy needs the name of a queue or type, of at most %d bytes", core.MaxQueueName)
	case len(set.MoveTo) > core.MaxQueueName || scope == core.PolicyOfQueue && set.MoveTo == name:
		return wrong(memberOf(at, "on_exhausted"), "on_exhausted.move must name another queue, with at most %d bytes",
			core.MaxQueueName)
	}
	return nil
}

// memberOf is the path of a member of what is at a path; an empty path is that of the whole input.
func memberOf(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// lastOf returns the last part of the path of a field.
func lastOf(field string) string { return field[strings.LastIndexByte(field, '.')+1:] }

// strict reads an object and refuses unknown members.
func strict(value json.RawMessage, into any) bool {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	return d.Decode(into) == nil
}

func durability(field string, value json.RawMessage) error {
	var word string
	if json.Unmarshal(value, &word) != nil || word != none {
		return wrong(field,
			`durability must be "none", or null: jobs are as durable as the broker's setting durability says`)
	}
	return nil
}

// none is the durability of jobs that are kept in memory only.
const none = "none"

// ShowPolicy converts a policy to its JSON form.
func ShowPolicy(p *core.PolicyInfo) *Policy {
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
		v.Backoff = writeBackoff(&p.Backoff)
	}
	if p.Has&core.PolicyExhausted != 0 {
		v.OnExhausted = (&Exhausted{p.Exhausted, p.MoveTo}).json()
	}
	return v
}
