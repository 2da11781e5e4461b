package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/core"
)

// A backoff is the waits between a failure and the next try. There are two kinds of words for it, because there are two
// kinds of backoffs. That of a policy is a list of waits or a formula with numbers of its own; exponential is one that
// doubles. That of a job (core.Backoff) is a word: the formula of Faktory, which nothing can change, or none.

// Backoff is the backoff of a policy in words, as forms and flags have it.
type Backoff struct {
	Kind   string // WaitList, constant, linear, exponential; empty: none is set
	Waits  string // of a list, separated by commas; of a formula: its first wait
	Max    string // of a formula: its longest wait; empty: no limit
	Jitter string // of a formula: the share of a wait that is random; empty: none
}

// WaitList is the Kind of a backoff with listed waits.
const WaitList = "list"

// Kinds are the kinds of a Backoff with a label for each.
var Kinds = []Choice{
	{WaitList, "a list"},
	{"constant", "the same each time"},
	{"linear", "times the failures"},
	{"exponential", "doubled each time"},
}

var backoffKinds = [...]string{
	core.BackoffConstant: "constant", core.BackoffLinear: "linear", core.BackoffExponential: "exponential",
}

// backoffJSON is a formula in JSON.
type backoffJSON struct {
	Kind   string  `json:"kind"`
	BaseS  float64 `json:"base_s"`
	MaxS   float64 `json:"max_s,omitempty"`
	Jitter float64 `json:"jitter,omitempty"`
}

// readBackoff reads a list of seconds or a formula.
func readBackoff(field string, value json.RawMessage) (r core.BackoffRule, err error) {
	var waits []float64
	var formula backoffJSON
	switch {
	case json.Unmarshal(value, &waits) == nil:
		r.Kind = core.BackoffSpans
		for i, s := range waits {
			d, err := wait(fmt.Sprintf("%s[%d]", field, i), s)
			if err != nil {
				return r, err
			}
			r.Spans = append(r.Spans, d)
		}
	case strict(value, &formula) && slices.Contains(backoffKinds[:], formula.Kind):
		r.Kind, r.Jitter = core.BackoffKind(slices.Index(backoffKinds[:], formula.Kind)), formula.Jitter
		if r.Base, err = wait(field+".base_s", formula.BaseS); err == nil {
			r.Max, err = wait(field+".max_s", formula.MaxS)
		}
		if err != nil {
			return r, err
		}
	default:
		return r, wrong(field, "backoff must be a list of seconds, or an object with kind constant, linear or "+
			"exponential, base_s, max_s and jitter")
	}
	if !r.Valid() {
		return r, wrong(field, "a backoff has 1 to %d waits of at most ten years, and jitter between 0 and 1",
			core.MaxBackoffSpans)
	}
	return r, nil
}

// wait is a number of seconds between two tries, which may be zero.
func wait(field string, s float64) (time.Duration, error) {
	if !(s >= 0 && s <= longest) {
		return 0, wrong(field, "%s must be a number of seconds between 0 and %.0f", lastOf(field), longest)
	}
	return durationOf(s), nil
}

// writeBackoff is the inverse of readBackoff.
func writeBackoff(r *core.BackoffRule) json.RawMessage {
	if r.Kind != core.BackoffSpans {
		return encode(backoffJSON{backoffKinds[r.Kind], r.Base.Seconds(), r.Max.Seconds(), r.Jitter})
	}
	waits := make([]float64, len(r.Spans))
	for i, d := range r.Spans {
		waits[i] = d.Seconds()
	}
	return encode(waits)
}

// backoffOf returns a backoff in words. The value is one that the API shows; others are as none.
func backoffOf(value json.RawMessage) (b Backoff) {
	r, err := readBackoff("", value)
	if err != nil {
		return b
	}
	if r.Kind == core.BackoffSpans {
		waits := make([]string, len(r.Spans))
		for i, d := range r.Spans {
			waits[i] = Span(d)
		}
		return Backoff{Kind: WaitList, Waits: strings.Join(waits, ",")}
	}
	b.Kind, b.Waits = backoffKinds[r.Kind], Span(r.Base)
	if r.Max > 0 {
		b.Max = Span(r.Max)
	}
	if r.Jitter > 0 {
		b.Jitter = strconv.FormatFloat(r.Jitter, 'g', -1, 64)
	}
	return b
}

// String is the backoff for people.
func (b *Backoff) String() string {
	if b.Kind == WaitList {
		return b.Waits
	}
	text := b.Kind + " " + b.Waits
	if b.Max != "" {
		text += " up to " + b.Max
	}
	if b.Jitter != "" {
		text += " with jitter " + b.Jitter
	}
	return text
}

// JSON is the backoff for the API; null: none is set. Errors are of type *Error, with the fields waits, backoff_max and
// jitter.
func (b *Backoff) JSON() (json.RawMessage, error) {
	switch b.Kind {
	case "":
		return json.RawMessage("null"), nil
	case WaitList:
		waits := []float64{}
		for part := range strings.SplitSeq(b.Waits, ",") {
			d, err := timeOf(part)
			if err != nil {
				return nil, wrong("waits", "%q is not a time; write a list such as 10s, 1m, 10m", strings.TrimSpace(part))
			}
			waits = append(waits, d.Seconds())
		}
		return encode(waits), nil
	}
	f := backoffJSON{Kind: b.Kind}
	for _, part := range []struct {
		field, text string
		to          *float64
	}{{"waits", b.Waits, &f.BaseS}, {"backoff_max", b.Max, &f.MaxS}} {
		d, err := timeOf(cmp.Or(strings.TrimSpace(part.text), "0"))
		if err != nil {
			return nil, wrong(part.field, "%q is not a time such as 90s, 15m or 2d", part.text)
		}
		*part.to = d.Seconds()
	}
	var err error
	if f.Jitter, err = strconv.ParseFloat(cmp.Or(strings.TrimSpace(b.Jitter), "0"), 64); err != nil {
		return nil, wrong("jitter", "%q is not a number", b.Jitter)
	}
	return encode(f), nil
}

// JobBackoffs are the words for the backoff of a job. The earlier word exponential is one for Faktory's.
var JobBackoffs = map[string]core.Backoff{
	"faktory": core.BackoffFaktory, "none": core.BackoffNone,
	"exponential": core.BackoffFaktory,
}
