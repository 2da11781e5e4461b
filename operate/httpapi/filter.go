package httpapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

// FilterQuery selects jobs in the query of a list. Some names may be repeated.
type FilterQuery struct {
	Q            string    `query:"q" doc:"a search, such as: queue:mail error:Timeout died:1h invoice" example:"queue:mail died:1h"`
	State        []string  `query:"state,explode" doc:"in one of these states; several with commas between, or several times"`
	Queue        []string  `query:"queue,explode" doc:"of this queue; may be given several times"`
	QueuePrefix  string    `query:"queue_prefix"`
	Type         []string  `query:"type,explode" doc:"of this type; may be given several times"`
	Origin       []string  `query:"origin,explode" doc:"submitted by this protocol; may be given several times"`
	Worker       string    `query:"worker" doc:"leased to this worker"`
	Tag          []string  `query:"tag,explode" doc:"with this tag; given several times: with all of them"`
	ErrorClass   string    `query:"error_class" doc:"type of the last failure; none: without one"`
	FailureGroup string    `query:"failure_group" doc:"of retrying and dead jobs; none: without one"`
	Batch        string    `query:"batch"`
	Parent       string    `query:"parent" doc:"name of the parent job"`
	Workflow     string    `query:"workflow" doc:"a job or a batch: this one and all below, which are children, members and jobs that wait for them"`
	UniqueKey    string    `query:"unique_key"`
	HoldsKey     bool      `query:"holds_unique_key" doc:"holds a unique key now, whichever"`
	ToStop       bool      `query:"cancel_requested" doc:"leased, and the worker is asked to stop"`
	IDPrefix     string    `query:"id_prefix"`
	Text         string    `query:"text" doc:"in the id, the type, the tags, or the type or message of the last failure"`
	BodyText     string    `query:"body_text" doc:"in the body; this reads all bodies that the rest of the filter allows"`
	Anywhere     string    `query:"anywhere" doc:"where text looks, or in the body"`
	CreatedFrom  time.Time `query:"created_from"`
	CreatedTo    time.Time `query:"created_to"`
	DueFrom      time.Time `query:"due_from" doc:"of scheduled and retrying jobs"`
	DueTo        time.Time `query:"due_to"`
	DiedFrom     time.Time `query:"died_from" doc:"of dead jobs"`
	DiedTo       time.Time `query:"died_to"`
	FinishedFrom time.Time `query:"finished_from" doc:"of jobs that are kept for their outcome"`
	FinishedTo   time.Time `query:"finished_to"`
	MinPriority  string    `query:"min_priority" pattern:"^-?[0-9]{1,10}$"`
	MaxPriority  string    `query:"max_priority" pattern:"^-?[0-9]{1,10}$"`
}

// jobFilter selects jobs in the body of a request, with the same names as in a query.
type jobFilter struct {
	Q            string    `json:"q,omitempty" doc:"a search, such as: queue:mail error:Timeout died:1h invoice"`
	State        Names     `json:"state,omitempty" doc:"in one of these states, such as dead"`
	Queue        Names     `json:"queue,omitempty" doc:"of one of these queues"`
	QueuePrefix  string    `json:"queue_prefix,omitempty"`
	Type         Names     `json:"type,omitempty" doc:"of one of these types"`
	Origin       Names     `json:"origin,omitempty" doc:"submitted by one of these protocols"`
	Worker       string    `json:"worker,omitempty" doc:"leased to this worker"`
	Tag          Names     `json:"tag,omitempty" doc:"with all of these tags"`
	ErrorClass   string    `json:"error_class,omitempty" doc:"type of the last failure; none: without one"`
	FailureGroup string    `json:"failure_group,omitempty" doc:"of retrying and dead jobs; none: without one"`
	Batch        string    `json:"batch,omitempty"`
	Parent       string    `json:"parent,omitempty" doc:"name of the parent job"`
	Workflow     string    `json:"workflow,omitempty" doc:"a job or a batch: this one and all below, which are children, members and jobs that wait for them"`
	UniqueKey    string    `json:"unique_key,omitempty"`
	HoldsKey     bool      `json:"holds_unique_key,omitempty" doc:"holds a unique key now, whichever"`
	ToStop       bool      `json:"cancel_requested,omitempty" doc:"leased, and the worker is asked to stop"`
	IDPrefix     string    `json:"id_prefix,omitempty"`
	Text         string    `json:"text,omitempty" doc:"in the id, the type, the tags, or the type or message of the last failure"`
	BodyText     string    `json:"body_text,omitempty" doc:"in the body; this reads all bodies that the rest of the filter allows"`
	Anywhere     string    `json:"anywhere,omitempty" doc:"where text looks, or in the body"`
	CreatedFrom  time.Time `json:"created_from,omitzero"`
	CreatedTo    time.Time `json:"created_to,omitzero"`
	DueFrom      time.Time `json:"due_from,omitzero" doc:"of scheduled and retrying jobs"`
	DueTo        time.Time `json:"due_to,omitzero"`
	DiedFrom     time.Time `json:"died_from,omitzero" doc:"of dead jobs"`
	DiedTo       time.Time `json:"died_to,omitzero"`
	FinishedFrom time.Time `json:"finished_from,omitzero" doc:"of jobs that are kept for their outcome"`
	FinishedTo   time.Time `json:"finished_to,omitzero"`
	MinPriority  *int64    `json:"min_priority,omitempty" minimum:"-4294967296" maximum:"4294967295"`
	MaxPriority  *int64    `json:"max_priority,omitempty" minimum:"-4294967296" maximum:"4294967295"`
}

// filter converts the query for the service.
func (q *FilterQuery) filter(now time.Time) (service.JobFilter, error) {
	f := service.JobFilter{
		States: splitAll(q.State), Queues: q.Queue, QueuePrefix: q.QueuePrefix, Types: q.Type, Origins: splitAll(q.Origin),
		Worker: q.Worker, Tags: q.Tag, ErrorClass: q.ErrorClass, FailureGroup: q.FailureGroup, Batch: q.Batch, Parent: q.Parent, Workflow: q.Workflow,
		UniqueKey: q.UniqueKey, HoldsKey: q.HoldsKey, CancelRequested: q.ToStop, IDPrefix: q.IDPrefix, Text: q.Text, BodyText: q.BodyText, Anywhere: q.Anywhere,
		CreatedFrom: q.CreatedFrom, CreatedTo: q.CreatedTo, DueFrom: q.DueFrom, DueTo: q.DueTo, DiedFrom: q.DiedFrom,
		DiedTo: q.DiedTo, FinishedFrom: q.FinishedFrom, FinishedTo: q.FinishedTo,
	}
	var err error
	if f.MinPriority, err = parsePriority("query.min_priority", q.MinPriority); err == nil {
		f.MaxPriority, err = parsePriority("query.max_priority", q.MaxPriority)
	}
	if err == nil {
		err = f.Search(q.Q, now)
	}
	return f, err
}

// filter converts the filter of a body for the service.
func (b *jobFilter) filter(now time.Time) (*service.JobFilter, error) {
	f := &service.JobFilter{
		States: b.State, Queues: b.Queue, QueuePrefix: b.QueuePrefix, Types: b.Type, Origins: b.Origin, Worker: b.Worker,
		Tags: b.Tag, ErrorClass: b.ErrorClass, FailureGroup: b.FailureGroup, Batch: b.Batch, Parent: b.Parent, Workflow: b.Workflow,
		UniqueKey: b.UniqueKey, HoldsKey: b.HoldsKey, CancelRequested: b.ToStop, IDPrefix: b.IDPrefix, Text: b.Text, BodyText: b.BodyText, Anywhere: b.Anywhere,
		CreatedFrom: b.CreatedFrom, CreatedTo: b.CreatedTo, DueFrom: b.DueFrom, DueTo: b.DueTo, DiedFrom: b.DiedFrom,
		DiedTo: b.DiedTo, FinishedFrom: b.FinishedFrom, FinishedTo: b.FinishedTo,
		MinPriority: b.MinPriority, MaxPriority: b.MaxPriority,
	}
	return f, f.Search(b.Q, now)
}

// splitAll splits values at commas.
func splitAll(values []string) (all []string) {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

func parsePriority(field, text string) (*int64, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no filter
	}
	n, err := strconv.ParseInt(text, 10, 33)
	if err != nil {
		return nil, &service.Error{Code: service.CodeInvalid, Field: field, Detail: "expected a number between -4294967296 and 4294967295"}
	}

	return &n, nil
}

// Names is one name or an array of names.
type Names []string

// Schema implements huma.SchemaProvider.
func (Names) Schema(huma.Registry) *huma.Schema {
	text := &huma.Schema{Type: huma.TypeString}
	return &huma.Schema{OneOf: []*huma.Schema{text, {Type: huma.TypeArray, Items: text}}}
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Names) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var one string
		err := json.Unmarshal(b, &one)
		*n = Names{one}
		return err
	}
	return json.Unmarshal(b, (*[]string)(n))
}
