package console

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"broker/core/policytext"
)

// policyView is a policy in the form of a queue's page. Times are in seconds.
type policyView struct {
	MaxFails, MaxAttempts          string
	LeaseFor, ExpiresIn, RetainFor string
	Kind, Waits, Max, Jitter       string
	End, MoveTo, Durability        string
	Any, FromConfig                bool
}

// waitList is the kind of a backoff with listed waits.
const waitList = "list"

// viewPolicy returns the form values of a policy; p may be nil.
func viewPolicy(p *policytext.Policy) policyView {
	if p == nil {
		return policyView{}
	}
	v := policyView{Any: true, FromConfig: p.FromConfig, Durability: p.Durability}
	if p.MaxFails != nil {
		v.MaxFails = strconv.FormatUint(uint64(*p.MaxFails), 10)
	}
	if p.MaxAttempts != nil {
		v.MaxAttempts = strconv.FormatUint(uint64(*p.MaxAttempts), 10)
	}
	for _, f := range []struct {
		to    *string
		value *float64
	}{{&v.LeaseFor, p.LeaseForS}, {&v.ExpiresIn, p.ExpiresInS}, {&v.RetainFor, p.RetainForS}} {
		if f.value != nil {
			*f.to = plainNumber(*f.value)
		}
	}
	var waits []float64
	var rule struct {
		Kind   string  `json:"kind"`
		BaseS  float64 `json:"base_s"`
		MaxS   float64 `json:"max_s"`
		Jitter float64 `json:"jitter"`
	}
	switch {
	case p.Backoff == nil:
	case json.Unmarshal(p.Backoff, &waits) == nil:
		texts := make([]string, len(waits))
		for i, s := range waits {
			texts[i] = plainNumber(s)
		}
		v.Kind, v.Waits = waitList, strings.Join(texts, ", ")
	case json.Unmarshal(p.Backoff, &rule) == nil:
		v.Kind, v.Waits = rule.Kind, plainNumber(rule.BaseS)
		if rule.MaxS > 0 {
			v.Max = plainNumber(rule.MaxS)
		}
		if rule.Jitter > 0 {
			v.Jitter = plainNumber(rule.Jitter)
		}
	}
	var move struct {
		Move string `json:"move"`
	}
	switch {
	case p.OnExhausted == nil || json.Unmarshal(p.OnExhausted, &v.End) == nil:
	case json.Unmarshal(p.OnExhausted, &move) == nil:
		v.End, v.MoveTo = "move", move.Move
	}
	return v
}

func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// policyForm reads a policy. Empty fields remove values.
func policyForm(form url.Values) (json.RawMessage, error) {
	members := map[string]any{}
	for field, member := range map[string]string{
		"max_fails": "max_fails", "max_attempts": "max_attempts", "lease_for": "lease_for_s",
		"expires_in": "expires_in_s", "retain_for": "retain_for_s",
	} {
		members[member] = nil
		if strings.TrimSpace(form.Get(field)) == "" {
			continue
		}
		n, err := decimal(form, field)
		if err != nil {
			return nil, err
		}
		members[member] = n
	}
	backoff, err := backoffForm(form)
	if err != nil {
		return nil, err
	}
	members["backoff"], members["durability"] = backoff, nil
	if how := form.Get("durability"); how != "" {
		members["durability"] = how
	}
	switch end := form.Get("end"); end {
	case "":
		members["on_exhausted"] = nil
	case "move":
		members["on_exhausted"] = map[string]string{"move": strings.TrimSpace(form.Get("move_to"))}
	default:
		members["on_exhausted"] = end
	}
	return json.Marshal(members)
}

// backoffForm reads the waits between failures; nil: no waits.
func backoffForm(form url.Values) (any, error) {
	kind := form.Get("backoff")
	switch kind {
	case "":
		return nil, nil
	case waitList:
		waits := []float64{}
		for part := range strings.SplitSeq(form.Get("waits"), ",") {
			s, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			if err != nil {
				return nil, invalid("waits",
					strconv.Quote(part)+" is not a number of seconds; write a list such as 10, 60, 600")
			}
			waits = append(waits, s)
		}
		return waits, nil
	}
	rule := map[string]any{"kind": kind}
	for field, member := range map[string]string{"waits": "base_s", "backoff_max": "max_s", "jitter": "jitter"} {
		if strings.TrimSpace(form.Get(field)) == "" {
			continue
		}
		n, err := decimal(form, field)
		if err != nil {
			return nil, err
		}
		rule[member] = n
	}
	return rule, nil
}

// decimal parses a number of a form.
func decimal(form url.Values, field string) (float64, error) {
	text := strings.TrimSpace(form.Get(field))
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 {
		return 0, invalid(field, strconv.Quote(text)+" is not a number of 0 or more")
	}
	return n, nil
}

// retype replaces the values with the submitted ones.
func (v *policyView) retype(form url.Values) {
	for name, field := range map[string]*string{
		"max_fails": &v.MaxFails, "max_attempts": &v.MaxAttempts, "lease_for": &v.LeaseFor, "expires_in": &v.ExpiresIn,
		"retain_for": &v.RetainFor,
		"backoff":    &v.Kind, "waits": &v.Waits, "backoff_max": &v.Max, "jitter": &v.Jitter, "end": &v.End,
		"move_to": &v.MoveTo, "durability": &v.Durability,
	} {
		*field = form.Get(name)
	}
}
