package console

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"broker/operate/service"
)

// queueNotes has the notes after a change, for one queue and for several.
var queueNotes = map[string][2]string{
	"pause":  {"The queue is paused.", "%s paused."},
	"resume": {"The queue is resumed.", "%s resumed."},
	"limit":  {"The limits are set.", "Limits of %s set."},
	"share":  {"The turns of its keys are set.", "Turns of the keys of %s set."},
	"policy": {"The policy is set.", "Policy of %s set."},
}

// applyQueueForm applies a form to one queue. Limits with empty fields do not change.
func (r *request) applyQueueForm(name, do string) error {
	var change service.QueueChange
	switch do {
	case "pause", "resume":
		paused := do == "pause"
		change.Paused = &paused
	case "limit":
		q, err := r.service.Queue(r.Context(), r.caller, name)
		if err != nil {
			return err
		}
		if err := limitChange(r.PostForm, &q, &change); err != nil {
			return err
		}
	case "share":
		sharing, err := sharingForm(r.PostForm)
		if err != nil {
			return err
		}
		change.Sharing = sharing
	case "policy":
		policy, err := policyForm(r.PostForm)
		if err != nil {
			return err
		}
		change.Policy = policy
	default:
		return invalid("do", "there is no action "+strconv.Quote(do))
	}
	_, err := r.service.ChangeQueue(r.Context(), r.caller, name, change)
	return err
}

// limitFieldsOfQueue lists the fields of a queue's limits.
var limitFieldsOfQueue = []string{"high", "normal", "low", "concurrency", "per_worker", "rate", "burst"}

// limitChange reads the limits of a form. Empty and unchanged fields change nothing; 0 removes a limit.
func limitChange(form url.Values, q *service.Queue, change *service.QueueChange) error {
	var jobs service.QueueMax
	if q.Max != nil {
		jobs = *q.Max
	}
	var leases service.Throttle
	if q.Throttle != nil {
		leases = *q.Throttle
	}
	newJobs, newLeases := service.QueueMaxChange{}, service.ThrottleChange{}
	for _, field := range []struct {
		name string
		now  uint32
		to   **uint32
	}{
		{"high", jobs.High, &newJobs.High},
		{"normal", jobs.Normal, &newJobs.Normal},
		{"low", jobs.Low, &newJobs.Low},
		{"concurrency", leases.Concurrency, &newLeases.Concurrency},
		{"per_worker", leases.PerWorker, &newLeases.PerWorker},
		{"burst", leases.Burst, &newLeases.Burst},
	} {
		if len(given(form, field.name)) == 0 {
			continue
		}
		n, err := number(form, field.name)
		if err != nil {
			return err
		}
		if n > math.MaxUint32 {
			return invalid(field.name, num(n)+" is too large")
		}
		if to := uint32(n); to != field.now { // number has checked that it is not negative
			*field.to = &to
		}
	}
	if text := strings.TrimSpace(form.Get("rate")); text != "" {
		rate, err := parseRate(text)
		if err != nil {
			return err
		}
		if rate != leases.RatePerS {
			newLeases.RatePerS = &rate
		}
	}
	if newJobs != (service.QueueMaxChange{}) {
		change.Max = &newJobs
	}
	if newLeases != (service.ThrottleChange{}) {
		change.Throttle = &newLeases
	}
	return nil
}

// parseRate parses a rate in leases per second.
func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, invalid("rate", strconv.Quote(text)+" is not a number of leases a second")
	}
	return rate, nil
}

// sharingForm reads the sharing mode of a queue's keys.
func sharingForm(form url.Values) (*service.Sharing, error) {
	s := &service.Sharing{Mode: form.Get("mode")}
	switch kind := form.Get("key"); kind {
	case "":
		return &service.Sharing{}, nil
	case "unique":
		s.KeyUnique = true
	case "tag":
		if s.KeyTag = strings.TrimSuffix(strings.TrimSpace(form.Get("tag")), ":"); s.KeyTag == "" {
			return nil, invalid("tag", "name the tag that holds the key, such as tenant for tenant:acme")
		}
	default:
		return nil, invalid("key", strconv.Quote(kind)+" is not tag or unique")
	}
	for line := range strings.Lines(form.Get("weights")) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, text, ok := cutLast(line, "=")
		turns, err := strconv.ParseUint(text, 10, 32)
		if !ok || err != nil {
			return nil, invalid("weights", strconv.Quote(line)+" is not a key, = and its turns, such as acme = 3")
		}
		if s.Weights == nil {
			s.Weights = map[string]uint32{}
		}
		s.Weights[key] = uint32(turns)
	}
	return s, nil
}

// cutLast cuts text at the last sep, because keys may contain it.
func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+len(sep):]), true
}

// weightLines formats the weights of keys for the form.
func weightLines(weights map[string]uint32) string {
	lines := make([]string, 0, len(weights))
	for _, key := range slices.Sorted(maps.Keys(weights)) {
		lines = append(lines, fmt.Sprintf("%s = %d", key, weights[key]))
	}
	return strings.Join(lines, "\n")
}

// limitValues returns the initial values of the form of a queue's limits.
func limitValues(q *service.Queue) map[string]string {
	values := map[string]string{}
	set := func(name string, n uint32) {
		if n > 0 {
			values[name] = strconv.FormatUint(uint64(n), 10)
		}
	}
	if t := q.Throttle; t != nil {
		set("concurrency", t.Concurrency)
		set("per_worker", t.PerWorker)
		set("burst", t.Burst)
		if t.RatePerS > 0 {
			values["rate"] = strconv.FormatFloat(t.RatePerS, 'f', -1, 64)
		}
	}
	if m := q.Max; m != nil {
		set("high", m.High)
		set("normal", m.Normal)
		set("low", m.Low)
	}
	return values
}

// sharingValues returns the initial values of the form of fair turns; s may be nil.
func sharingValues(s *service.Sharing) map[string]string {
	if s == nil {
		return nil
	}
	values := map[string]string{"tag": s.KeyTag, "mode": s.Mode, "weights": weightLines(s.Weights)}
	switch {
	case s.KeyUnique:
		values["key"] = "unique"
	case s.KeyTag != "":
		values["key"] = "tag"
	}
	return values
}

// typed returns the submitted values of a form.
func typed(form url.Values) map[string]string {
	values := map[string]string{}
	for name := range form {
		values[name] = form.Get(name)
	}
	return values
}
