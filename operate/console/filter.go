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

// filterField is a filter condition in the filter bar.
type filterField struct {
	*service.FilterField
	top bool // shown in the upper part of the bar
}

// filterFields lists all conditions except the state, in the order of the bar.
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

// Kind is the kind of the form field: time, number or flag; empty: text.
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
		return 0, invalid("", strconv.Quote(text)+" is not a number between -4294967296 and 4294967295")
	}
	return n, nil
}

// parseTime parses a time in the format of forms and the API. A time without a zone is UTC. A duration such as 2d means
// that long ago.
func (r *request) parseTime(text string) (time.Time, error) {
	t, ok := service.ParseInstant(text, r.console.options.Now())
	if !ok {
		return t, invalid("", strconv.Quote(text)+" is not a time such as 2026-01-31T14:05")
	}
	return t, nil
}

// formTime formats a time for a form.
func formTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

// fieldValue returns the value of a parameter for the filter bar.
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

// isRelative reports whether the value of a time is a span such as 1h. The form sends it unchanged, so it stays
// relative.
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

// problem describes an invalid parameter.
type problem struct{ Name, Label, Text string }

// jobFilter parses the filter of a query. It also returns the invalid parameters.
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

// listParameters are the parameters of a list that do not filter jobs.
var listParameters = []string{"state", "q", "sort", "cursor", "hold", "column", "keep", "groups", "since", "classes"}

// unknownFilters returns the unknown parameters. A list that ignored them would show, and change, more jobs than the
// user wants.
func unknownFilters(query url.Values) (problems []problem) {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if service.FieldNamed(name) == nil && !slices.Contains(listParameters, name) {
			problems = append(problems, problem{name, name, "there is no such filter"})
		}
	}
	return problems
}

// given returns the non-empty values of a parameter.
func given(query url.Values, name string) []string {
	return slices.DeleteFunc(slices.Clone(query[name]), func(v string) bool { return strings.TrimSpace(v) == "" })
}

// givenStates returns the states in a query, which may be separated by commas.
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

// filterQuery returns the parameters of a query that filter jobs.
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

// actionFilter returns filterQuery for an action on all jobs of the list. It converts spans such as 1h to instants, so
// that the action selects the same jobs until it is confirmed.
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

// problemOf converts an error of the service to a problem of a parameter.
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

// filterChip shows a condition with a link that removes it.
type filterChip struct {
	Label, Value string
	URL          template.URL
}

// filterChips returns the active conditions.
func filterChips(query url.Values) (chips []filterChip) {
	here := maps.Clone(query)
	here.Del("cursor")
	for i := range filterFields {
		field := &filterFields[i]
		values := given(query, field.Name)
		for _, v := range values {
			q := maps.Clone(here)
			q[field.Name] = slices.DeleteFunc(slices.Clone(values), func(other string) bool { return other == v })
			chips = append(chips, filterChip{field.Label, v, with(q)})
		}
	}
	return chips
}

// filterText describes a filter in words.
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

// stateNames lists all states, in the order of the tabs.
var stateNames = func() (names []string) {
	for _, s := range []core.State{
		core.Ready, core.Leased, core.Scheduled, core.Blocked, core.Retrying, core.Dead, core.Done,
	} {
		names = append(names, s.String())
	}
	return names
}()
