package console

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/core"
	"broker/operate/service"
)

// filterField is a condition of a filter: a parameter of the URL, named as in the API.
type filterField struct {
	Name, Label string
	Kind        string   // time or number; empty: text
	Choices     []string // what may be chosen; none: anything
	many        bool     // several values may be given
	top         bool     // it stands in the upper part of the bar
	set         func(f *service.JobFilter, values []string) error
}

// filterFields are all conditions but the state, in the order of the bar.
var filterFields = []filterField{
	{Name: "text", Label: "text", top: true, set: textField(func(f *service.JobFilter) *string { return &f.Text })},
	{Name: "queue", Label: "queue", top: true, many: true, set: listField(func(f *service.JobFilter) *[]string { return &f.Queues })},
	{Name: "type", Label: "type", top: true, many: true, set: listField(func(f *service.JobFilter) *[]string { return &f.Types })},
	{Name: "queue_prefix", Label: "queue begins with", set: textField(func(f *service.JobFilter) *string { return &f.QueuePrefix })},
	{Name: "tag", Label: "tag", many: true, set: listField(func(f *service.JobFilter) *[]string { return &f.Tags })},
	{Name: "error_class", Label: "error class", set: textField(func(f *service.JobFilter) *string { return &f.ErrorClass })},
	{Name: "failure_group", Label: "failure group", set: textField(func(f *service.JobFilter) *string { return &f.FailureGroup })},
	{
		Name: "origin", Label: "submitted by", many: true, Choices: append(core.ProtocolNames(), core.Internal.String()),
		set: listField(func(f *service.JobFilter) *[]string { return &f.Origins }),
	},
	{Name: "worker", Label: "worker", set: textField(func(f *service.JobFilter) *string { return &f.Worker })},
	{Name: "batch", Label: "batch", set: textField(func(f *service.JobFilter) *string { return &f.Batch })},
	{Name: "parent", Label: "parent job", set: textField(func(f *service.JobFilter) *string { return &f.Parent })},
	{Name: "unique_key", Label: "unique key", set: textField(func(f *service.JobFilter) *string { return &f.UniqueKey })},
	{Name: "id_prefix", Label: "id begins with", set: textField(func(f *service.JobFilter) *string { return &f.IDPrefix })},
	{Name: "body_text", Label: "text in the body", set: textField(func(f *service.JobFilter) *string { return &f.BodyText })},
	{Name: "min_priority", Label: "priority from", Kind: "number", set: priorityField(func(f *service.JobFilter) **int64 { return &f.MinPriority })},
	{Name: "max_priority", Label: "priority to", Kind: "number", set: priorityField(func(f *service.JobFilter) **int64 { return &f.MaxPriority })},
	{Name: "created_from", Label: "created from", Kind: "time", set: timeField(func(f *service.JobFilter) *time.Time { return &f.CreatedFrom })},
	{Name: "created_to", Label: "created to", Kind: "time", set: timeField(func(f *service.JobFilter) *time.Time { return &f.CreatedTo })},
	{Name: "due_from", Label: "due from", Kind: "time", set: timeField(func(f *service.JobFilter) *time.Time { return &f.DueFrom })},
	{Name: "due_to", Label: "due to", Kind: "time", set: timeField(func(f *service.JobFilter) *time.Time { return &f.DueTo })},
	{Name: "died_from", Label: "died from", Kind: "time", set: timeField(func(f *service.JobFilter) *time.Time { return &f.DiedFrom })},
	{Name: "died_to", Label: "died to", Kind: "time", set: timeField(func(f *service.JobFilter) *time.Time { return &f.DiedTo })},
	{Name: "finished_from", Label: "finished from", Kind: "time", set: timeField(func(f *service.JobFilter) *time.Time { return &f.FinishedFrom })},
	{Name: "finished_to", Label: "finished to", Kind: "time", set: timeField(func(f *service.JobFilter) *time.Time { return &f.FinishedTo })},
}

func textField(at func(*service.JobFilter) *string) func(*service.JobFilter, []string) error {
	return func(f *service.JobFilter, values []string) error {
		*at(f) = values[0]
		return nil
	}
}

func listField(at func(*service.JobFilter) *[]string) func(*service.JobFilter, []string) error {
	return func(f *service.JobFilter, values []string) error {
		*at(f) = values
		return nil
	}
}

func priorityField(at func(*service.JobFilter) **int64) func(*service.JobFilter, []string) error {
	return func(f *service.JobFilter, values []string) error {
		n, err := parsePriority(values[0])
		*at(f) = &n
		return err
	}
}

func timeField(at func(*service.JobFilter) *time.Time) func(*service.JobFilter, []string) error {
	return func(f *service.JobFilter, values []string) (err error) {
		*at(f), err = parseTime(values[0])
		return err
	}
}

// parsePriority reads a priority.
func parsePriority(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 33)
	if err != nil {
		return 0, &service.Error{Code: service.CodeInvalid, Detail: strconv.Quote(text) + " is not a number between -4294967296 and 4294967295"}
	}
	return n, nil
}

// parseTime reads a time as forms and the API write it; without a zone it is UTC.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &service.Error{Code: service.CodeInvalid, Detail: strconv.Quote(text) + " is not a time such as 2026-01-31T14:05"}
}

// formTime is a time as a form holds it.
func formTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

// problem is what is wrong with one parameter.
type problem struct{ Name, Label, Text string }

// jobFilter is the filter of a query, with what is wrong with it.
func jobFilter(query url.Values, states []string) (f service.JobFilter, problems []problem) {
	f.States = states
	for i := range filterFields {
		field := &filterFields[i]
		values := given(query, field.Name)
		if len(values) == 0 {
			continue
		}
		if err := field.set(&f, values); err != nil {
			problems = append(problems, problem{field.Name, field.Label, err.Error()})
		}
	}
	return f, problems
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
