package service

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/core"
)

// FilterField is a condition of a filter. The API, the console, searches and the command line share this table.
type FilterField struct {
	Name    string   // in queries, forms and the bodies of requests
	Word    string   // in a search; empty: none
	Flag    string   // of the command line; empty: the name with dashes
	Label   string   // in forms
	Doc     string   // description, after the word "jobs"
	Choices []string // allowed values; none: any value
	Ahead   bool     // a span on the command line is after now, not before

	list     func(*JobFilter) *[]string // set for fields with several values
	text     func(*JobFilter) *string
	priority func(*JobFilter) **int64
	instant  func(*JobFilter) *time.Time
	flag     func(*JobFilter) *bool
}

// FilterFields are all conditions, in the order in which forms show them.
var FilterFields = []FilterField{
	{
		Name: "state", Word: "state", Label: "state", Doc: "in this state", Choices: stateNames(),
		list: func(f *JobFilter) *[]string { return &f.States },
	},
	{Name: "queue", Word: "queue", Label: "queue", Doc: "of this queue", list: func(f *JobFilter) *[]string {
		return &f.Queues
	}},
	{Name: "type", Word: "type", Label: "type", Doc: "of this type", list: func(f *JobFilter) *[]string {
		return &f.Types
	}},
	{
		Name: "queue_prefix", Label: "queue begins with", Doc: "of queues whose name begins so",
		text: func(f *JobFilter) *string { return &f.QueuePrefix },
	},
	{
		Name: "tag", Word: "tag", Label: "tag", Doc: "with this tag; with all of them if there are several",
		list: func(f *JobFilter) *[]string { return &f.Tags },
	},
	{
		Name: "error_class", Word: "error", Label: "error class",
		Doc:  "whose last failure is of this type; none: without one",
		text: func(f *JobFilter) *string { return &f.ErrorClass },
	},
	{
		Name: "failure_group", Word: "group", Label: "failure group",
		Doc:  "retrying or dead, in this failure group; none: without one",
		text: func(f *JobFilter) *string { return &f.FailureGroup },
	},
	{
		Name: "worker_version", Word: "version", Label: "worker version",
		Doc:  "leased, retrying or dead, last leased by a worker of this version; none: of a worker that names none",
		text: func(f *JobFilter) *string { return &f.Version },
	},
	{
		Name: "origin", Word: "origin", Label: "submitted by", Doc: "submitted by this protocol",
		Choices: append(core.ProtocolNames(), core.Internal.String()),
		list:    func(f *JobFilter) *[]string { return &f.Origins },
	},
	{Name: "worker", Word: "worker", Label: "worker", Doc: "leased to this worker", text: func(f *JobFilter) *string {
		return &f.Worker
	}},
	{
		Name: "failed_by", Label: "failed by worker", Doc: "whose last failure was reported by this worker",
		text: func(f *JobFilter) *string { return &f.FailedBy },
	},
	{Name: "batch", Word: "batch", Label: "batch", Doc: "of this batch", text: func(f *JobFilter) *string {
		return &f.Batch
	}},
	{
		Name: "parent", Word: "parent", Label: "parent job", Doc: "with this job as their parent",
		text: func(f *JobFilter) *string { return &f.Parent },
	},
	{
		Name: "workflow", Word: "workflow", Label: "workflow of", Doc: "that are this one, or below this job or batch",
		text: func(f *JobFilter) *string { return &f.Workflow },
	},
	{
		Name: "operation", Word: "operation", Label: "changed by", Doc: "that this operation has changed, within an hour",
		text: func(f *JobFilter) *string { return &f.Operation },
	},
	{
		Name: "unique_key", Flag: "unique", Word: "unique", Label: "unique key", Doc: "with this unique key",
		text: func(f *JobFilter) *string { return &f.UniqueKey },
	},
	{
		Name: "holds_unique_key", Label: "holds a unique key", Doc: "that hold a unique key now, whichever",
		Choices: []string{"true"}, flag: func(f *JobFilter) *bool { return &f.HoldsKey },
	},
	{
		Name: "cancel_requested", Flag: "to-stop", Label: "is to stop", Doc: "that run, and whose workers are asked to stop",
		Choices: []string{"true"}, flag: func(f *JobFilter) *bool { return &f.CancelRequested },
	},
	{
		Name: "id_prefix", Word: "id", Label: "id begins with", Doc: "whose id begins so",
		text: func(f *JobFilter) *string { return &f.IDPrefix },
	},
	{
		Name: "text", Word: "text", Label: "text", Doc: "with this in the id, the type, a tag or the last failure",
		text: func(f *JobFilter) *string { return &f.Text },
	},
	{
		Name: "anywhere", Label: "text anywhere", Doc: "with this where text looks, or in the body",
		text: func(f *JobFilter) *string { return &f.Anywhere },
	},
	{
		Name: "body_text", Word: "body", Label: "text in the body",
		Doc:  "with this in the body; reads all bodies that the rest of the filter allows",
		text: func(f *JobFilter) *string { return &f.BodyText },
	},
	{
		Name: "min_priority", Label: "priority from", Doc: "of at least this priority",
		priority: func(f *JobFilter) **int64 { return &f.MinPriority },
	},
	{
		Name: "max_priority", Label: "priority to",
		Doc:      "of at most this priority",
		priority: func(f *JobFilter) **int64 { return &f.MaxPriority },
	},
	{
		Name: "created_from", Flag: "created-after", Word: "created", Label: "created from",
		Doc:     "created then or later",
		instant: func(f *JobFilter) *time.Time { return &f.CreatedFrom },
	},
	{
		Name: "created_to", Flag: "created-before", Label: "created to",
		Doc:     "created before",
		instant: func(f *JobFilter) *time.Time { return &f.CreatedTo },
	},
	{
		Name: "due_from", Flag: "due-after", Ahead: true, Word: "due", Label: "due from",
		Doc:     "scheduled or retrying, due then or later",
		instant: func(f *JobFilter) *time.Time { return &f.DueFrom },
	},
	{
		Name: "due_to", Flag: "due-before", Ahead: true, Label: "due to",
		Doc:     "scheduled or retrying, due before",
		instant: func(f *JobFilter) *time.Time { return &f.DueTo },
	},
	{
		Name: "died_from", Flag: "died-after", Word: "died", Label: "died from", Doc: "dead since then or later",
		instant: func(f *JobFilter) *time.Time { return &f.DiedFrom },
	},
	{
		Name: "died_to", Flag: "died-before", Label: "died to",
		Doc:     "dead since before",
		instant: func(f *JobFilter) *time.Time { return &f.DiedTo },
	},
	{
		Name: "finished_from", Flag: "finished-after", Word: "finished", Label: "finished from",
		Doc:     "kept for their outcome, finished then or later",
		instant: func(f *JobFilter) *time.Time { return &f.FinishedFrom },
	},
	{
		Name: "finished_to", Flag: "finished-before", Label: "finished to", Doc: "kept for their outcome, finished before",
		instant: func(f *JobFilter) *time.Time { return &f.FinishedTo },
	},
}

// stateNames are all states.
func stateNames() (names []string) {
	for _, s := range core.States {
		names = append(names, s.String())
	}
	return names
}

// FieldNamed returns the field with a name; nil if there is none.
func FieldNamed(name string) *FilterField {
	i := slices.IndexFunc(FilterFields, func(f FilterField) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &FilterFields[i]
}

// FieldOfWord returns the field that a word of a search means; nil if there is none.
func FieldOfWord(word string) *FilterField {
	i := slices.IndexFunc(FilterFields,
		func(f FilterField) bool { return word != "" && (f.Word == word || f.Name == word) })
	if i < 0 {
		return nil
	}
	return &FilterFields[i]
}

// Many reports whether the field may have several values.
func (f *FilterField) Many() bool { return f.list != nil }

// IsTime, IsNumber and IsFlag report the type of the values; otherwise they are text.
func (f *FilterField) IsTime() bool   { return f.instant != nil }
func (f *FilterField) IsNumber() bool { return f.priority != nil }
func (f *FilterField) IsFlag() bool   { return f.flag != nil }

// Set adds a condition to a filter. A time is an instant, or a duration before now.
func (f *FilterField) Set(to *JobFilter, values []string, now time.Time) error {
	switch {
	case f.list != nil:
		*f.list(to) = values
	case f.text != nil:
		*f.text(to) = values[0]
	case f.flag != nil:
		*f.flag(to) = values[0] == "true"
	case f.priority != nil:
		n, err := strconv.ParseInt(strings.TrimSpace(values[0]), 10, 33)
		if err != nil {
			return invalid(f.Name, "%q is not a number between -4294967296 and 4294967295", values[0])
		}
		*f.priority(to) = &n
	default:
		at, ok := ParseInstant(values[0], now)
		if !ok {
			return invalid(f.Name, "%q is not a time such as 2026-01-31T14:05, or a span such as 90m or 2d", values[0])
		}
		*f.instant(to) = at
	}
	return nil
}

// values returns the values of the field in a filter, as text.
func (f *FilterField) values(of *JobFilter) []string {
	switch {
	case f.list != nil:
		return *f.list(of)
	case f.text != nil && *f.text(of) != "":
		return []string{*f.text(of)}
	case f.flag != nil && *f.flag(of):
		return []string{"true"}
	case f.priority != nil && *f.priority(of) != nil:
		return []string{strconv.FormatInt(**f.priority(of), 10)}
	case f.instant != nil && !f.instant(of).IsZero():
		return []string{f.instant(of).UTC().Format(time.RFC3339)}
	}
	return nil
}

// ParseInstant reads a time in the format of forms and the API (UTC if it has no zone), a time of day
// (UTC; the last one before now), or a duration before now; with a minus,
// after now.
func ParseInstant(text string, now time.Time) (time.Time, bool) {
	text = strings.TrimSpace(text)
	for _, layout := range []string{
		"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", time.RFC3339Nano, time.DateOnly,
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	for _, layout := range []string{"15:04", "15:04:05"} { // the last time that clocks showed it
		if t, err := time.Parse(layout, text); err == nil {
			now = now.UTC()
			at := now.Truncate(24 * time.Hour).Add(t.Sub(t.Truncate(24 * time.Hour)))
			if at.After(now) {
				at = at.Add(-24 * time.Hour)
			}
			return at, true
		}
	}
	ahead := strings.HasPrefix(text, "-")
	span, ok := parseSpan(strings.TrimPrefix(text, "-"))
	if ahead {
		span = -span
	}
	return now.Add(-span), ok
}

// parseSpan reads a duration such as 90m, 1h30m or 2d. Days have 24 hours.
func parseSpan(text string) (time.Duration, bool) {
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || n < 0 || n > 36500 {
			return 0, false
		}
		return time.Duration(n * 24 * float64(time.Hour)), true
	}
	span, err := time.ParseDuration(text)
	return span, err == nil && span >= 0 && span <= longestSpan
}
