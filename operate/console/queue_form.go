package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"broker/core/schema"
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

// maxFields are the fields of a queue's most jobs.
var maxFields = []schema.Field{
	{Name: "high", Label: "Most jobs, high priority", Number: true},
	{Name: "normal", Label: "Most jobs, normal", Number: true},
	{Name: "low", Label: "Most jobs, low", Number: true},
}

// limitChange reads the limits of a form. Empty and unchanged fields change nothing; 0 removes a limit.
func limitChange(form url.Values, q *service.Queue, change *service.QueueChange) error {
	var jobs service.QueueMax
	if q.Max != nil {
		jobs = *q.Max
	}
	newJobs := service.QueueMaxChange{}
	for i, field := range []struct {
		now uint32
		to  **uint32
	}{{jobs.High, &newJobs.High}, {jobs.Normal, &newJobs.Normal}, {jobs.Low, &newJobs.Low}} {
		name := maxFields[i].Name
		if len(given(form, name)) == 0 {
			continue
		}
		n, err := number(form, name)
		if err != nil {
			return err
		}
		if n > math.MaxUint32 {
			return invalid(name, num(n)+" is too large")
		}
		if to := uint32(n); to != field.now { // number has checked that it is not negative
			*field.to = &to
		}
	}
	if newJobs != (service.QueueMaxChange{}) {
		change.Max = &newJobs
	}
	var now schema.Throttle
	if q.Throttle != nil {
		now = *q.Throttle
	}
	members, err := throttleForm(form)
	if err != nil {
		return err
	}
	was := schema.Members(now)
	maps.DeleteFunc(members, func(name string, value json.RawMessage) bool {
		return string(value) == "null" || bytes.Equal(value, was[name])
	})
	if len(members) == 0 {
		return nil
	}
	change.Throttle = new(schema.ThrottleChange)
	return fill(change.Throttle, members)
}

// throttleForm reads the settings of a limit; those whose fields are empty are null.
func throttleForm(form url.Values) (map[string]json.RawMessage, error) {
	members, err := schema.ReadFields(schema.ThrottleRows, form.Get)
	return members, fieldError(err)
}

// fill sets the settings of a struct of package schema.
func fill(to any, members map[string]json.RawMessage) error {
	text, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// limitFields are the fields of a limit with the values in a form.
func limitFields(form url.Values) []schema.Field {
	fields := schema.Fields(schema.ThrottleRows, nil)
	typedFields(fields, form)
	return fields
}

// queueLimitFields are the fields of the limits of a queue, with the values in a form.
func queueLimitFields(form url.Values) []schema.Field {
	fields := append(limitFields(form), maxFields...)
	typedFields(fields, form)
	return fields
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

// limitsOfQueue are the fields of the form of a queue's limits.
func limitsOfQueue(q *service.Queue) []schema.Field {
	values := url.Values{}
	if m := q.Max; m != nil {
		for i, n := range []uint32{m.High, m.Normal, m.Low} {
			if n > 0 {
				values.Set(maxFields[i].Name, strconv.FormatUint(uint64(n), 10))
			}
		}
	}
	if t := q.Throttle; t != nil {
		members := schema.Members(t)
		for i := range schema.ThrottleRows {
			row := &schema.ThrottleRows[i]
			if value := members[row.Name]; string(value) != "0" {
				values.Set(row.Base(), row.Text(value))
			}
		}
	}
	return queueLimitFields(values)
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
