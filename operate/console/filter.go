package console

import (
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/core"
	"broker/operate/service"
)

// filterField is a condition of a filter as the bar shows it.
type filterField struct {
	*service.FilterField
	top bool // it stands in the upper part of the bar
}

// filterFields are all conditions but the state, in the order of the bar.
var filterFields = func() (fields []filterField) {
	top := []string{"queue", "type"}
	for _, name := range top {
		fields = append(fields, filterField{service.FieldNamed(name), true})
	}
	for i := range service.FilterFields {
		if f := &service.FilterFields[i]; f.Name != "state" && !slices.Contains(top, f.Name) {
			fields = append(fields, filterField{f, false})
		}
	}
	return fields
}()

// Kind is the kind of the field in a form: time, number or flag; empty: text.
func (f *filterField) Kind() string {
	switch {
	case f.IsTime():
		return "time"
	case f.IsNumber():
		return "number"
	case f.IsFlag():
		return "flag"
	}
	return ""
}

// parsePriority reads a priority.
func parsePriority(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 33)
	if err != nil {
		return 0, &service.Error{Code: service.CodeInvalid, Detail: strconv.Quote(text) + " is not a number between -4294967296 and 4294967295"}
	}
	return n, nil
}

// parseTime reads a time as forms and the API write it; without a zone it is UTC. A span such as 2d is counted from now.
func (r *request) parseTime(text string) (time.Time, error) {
	t, ok := service.ParseInstant(text, r.console.options.Now())
	if !ok {
		return t, &service.Error{Code: service.CodeInvalid, Detail: strconv.Quote(text) + " is not a time such as 2026-01-31T14:05"}
	}
	return t, nil
}

// formTime is a time as a form holds it.
func formTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

// fieldValue is what the bar shows for a parameter.
func fieldValue(d *jobsData, name string) string {
	values := given(d.query, name)
	if len(values) == 0 {
		return ""
	}
	if t, isTime := typedInstant(values[0]); isTime {
		return formTime(t)
	}
	return values[0]
}

// isRelative reports whether the value of a time is not an instant: a span such as 1h is kept as it is, and so stays relative when the form
// is sent again.
func isRelative(d *jobsData, name string) bool {
	values := given(d.query, name)
	if len(values) == 0 {
		return false
	}
	_, isTime := typedInstant(values[0])
	return !isTime
}

// typedInstant is the instant that a text is; ok is false for spans.
func typedInstant(text string) (t time.Time, ok bool) {
	early, ok := service.ParseInstant(text, time.Unix(0, 0))
	late, _ := service.ParseInstant(text, time.Unix(1, 0))
	return early, ok && early.Equal(late)
}

// markInvalid marks a field that is wrong.
func markInvalid(d *jobsData, name string) template.HTMLAttr {
	if slices.ContainsFunc(d.Problems, func(p problem) bool { return p.Name == name }) {
		return ` aria-invalid="true"`
	}
	return ""
}

// problem is what is wrong with one parameter.
type problem struct{ Name, Label, Text string }

// jobFilter is the filter of a query, with what is wrong with it.
func jobFilter(query url.Values, states []string, now time.Time) (f service.JobFilter, problems []problem) {
	f.States = states
	for i := range filterFields {
		field := &filterFields[i]
		values := given(query, field.Name)
		if len(values) == 0 {
			continue
		}
		if err := field.Set(&f, values, now); err != nil {
			problems = append(problems, problem{field.Name, field.Label, err.Error()})
		}
	}
	return f, append(problems, unknownFilters(query)...)
}

// listParameters are the parameters of a list that do not choose jobs.
var listParameters = []string{"state", "q", "sort", "cursor", "looked", "hold", "column", "keep"}

// unknownFilters are the parameters that no list knows. A list that ignored them would show, and change, jobs that nobody asked for.
func unknownFilters(query url.Values) (problems []problem) {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if service.FieldNamed(name) == nil && !slices.Contains(listParameters, name) {
			problems = append(problems, problem{name, name, "there is no such filter"})
		}
	}
	return problems
}

// given are the values of a parameter that are not empty.
func given(query url.Values, name string) []string {
	return slices.DeleteFunc(slices.Clone(query[name]), func(v string) bool { return strings.TrimSpace(v) == "" })
}

// givenStates are the states that a query names, also several with commas between.
func givenStates(query url.Values) (states []string) {
	for _, v := range query["state"] {
		for part := range strings.SplitSeq(v, ",") {
			if part != "" {
				states = append(states, part)
			}
		}
	}
	return states
}

// filterQuery is the part of a query that chooses jobs.
func filterQuery(query url.Values, states []string) url.Values {
	q := url.Values{}
	for i := range filterFields {
		if values := given(query, filterFields[i].Name); len(values) > 0 {
			q[filterFields[i].Name] = values
		}
	}
	if len(states) > 0 {
		q["state"] = states
	}
	return q
}

// actionFilter is filterQuery for an action on all jobs that the list has: spans such as 1h become instants, so that the action means the same
// jobs until it is confirmed.
func (r *request) actionFilter(states []string) url.Values {
	q, now := filterQuery(r.query, states), r.console.options.Now()
	for name, values := range q {
		if f := service.FieldNamed(name); !f.IsTime() {
			continue
		}
		if t, ok := service.ParseInstant(values[0], now); ok {
			q[name] = []string{t.UTC().Format(time.RFC3339Nano)}
		}
	}
	return q
}

// problemOf is a refusal of the service as a problem of a parameter.
func problemOf(e *service.Error) problem {
	name := e.Field[strings.LastIndexByte(e.Field, '.')+1:]
	label := name
	for i := range filterFields {
		if filterFields[i].Name == name {
			label = filterFields[i].Label
		}
	}
	if label == "" {
		label = "filter"
	}
	return problem{name, strings.ReplaceAll(label, "_", " "), e.Detail}
}

// filterChip takes one condition away.
type filterChip struct {
	Label, Value string
	URL          any // template.URL
}

// filterChips are the conditions in force, each with the link that takes it away.
func filterChips(query url.Values) (chips []filterChip, err error) {
	here := maps.Clone(query)
	here.Del("cursor")
	for i := range filterFields {
		field := &filterFields[i]
		values := given(query, field.Name)
		for _, v := range values {
			q := maps.Clone(here)
			q[field.Name] = slices.DeleteFunc(slices.Clone(values), func(other string) bool { return other == v })
			link, err := with(q)
			if err != nil {
				return nil, err
			}
			chips = append(chips, filterChip{field.Label, v, link})
		}
	}
	return chips, nil
}

// filterText says in words what a filter chooses.
func filterText(query url.Values) string {
	var parts []string
	if states := query["state"]; len(states) > 0 {
		parts = append(parts, strings.Join(states, " or "))
	}
	for i := range filterFields {
		if values := given(query, filterFields[i].Name); len(values) > 0 {
			parts = append(parts, filterFields[i].Label+" "+strings.Join(values, ", "))
		}
	}
	if len(parts) == 0 {
		return "every job of the broker"
	}
	return strings.Join(parts, " · ")
}

// stateNames are all states, in the order of the tabs.
var stateNames = func() (names []string) {
	for _, s := range []core.State{core.Ready, core.Leased, core.Scheduled, core.Blocked, core.Retrying, core.Dead, core.Done} {
		names = append(names, s.String())
	}
	return names
}()
