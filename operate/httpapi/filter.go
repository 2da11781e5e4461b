package httpapi

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

// FilterQuery selects jobs in the query of a list. huma wants a field for each condition; what they mean is in
// service.FilterFields. Some names may be repeated.
type FilterQuery struct {
	Q            string    `query:"q" doc:"a search, such as: queue:mail error:Timeout died:1h invoice" example:"queue:mail died:1h"`
	State        []string  `query:"state,explode"`
	Queue        []string  `query:"queue,explode"`
	QueuePrefix  string    `query:"queue_prefix"`
	Type         []string  `query:"type,explode"`
	Origin       []string  `query:"origin,explode"`
	Worker       string    `query:"worker"`
	FailedBy     string    `query:"failed_by"`
	Tag          []string  `query:"tag,explode"`
	ErrorClass   string    `query:"error_class"`
	FailureGroup string    `query:"failure_group"`
	Version      string    `query:"worker_version"`
	Batch        string    `query:"batch"`
	Parent       string    `query:"parent"`
	Workflow     string    `query:"workflow"`
	Operation    string    `query:"operation"`
	UniqueKey    string    `query:"unique_key"`
	HoldsKey     bool      `query:"holds_unique_key"`
	ToStop       bool      `query:"cancel_requested"`
	IDPrefix     string    `query:"id_prefix"`
	Text         string    `query:"text"`
	BodyText     string    `query:"body_text"`
	Anywhere     string    `query:"anywhere"`
	CreatedFrom  time.Time `query:"created_from"`
	CreatedTo    time.Time `query:"created_to"`
	DueFrom      time.Time `query:"due_from"`
	DueTo        time.Time `query:"due_to"`
	DiedFrom     time.Time `query:"died_from"`
	DiedTo       time.Time `query:"died_to"`
	FinishedFrom time.Time `query:"finished_from"`
	FinishedTo   time.Time `query:"finished_to"`
	MinPriority  string    `query:"min_priority" pattern:"^-?[0-9]{1,10}$"`
	MaxPriority  string    `query:"max_priority" pattern:"^-?[0-9]{1,10}$"`
}

// filter converts the query for the service.
func (q *FilterQuery) filter(now time.Time) (service.JobFilter, error) {
	var f service.JobFilter
	given := reflect.ValueOf(q).Elem()
	for i := range given.NumField() {
		name, _, _ := strings.Cut(given.Type().Field(i).Tag.Get("query"), ",")
		field := service.FieldNamed(name)
		if field == nil {
			continue // q
		}
		var values []string
		switch v := given.Field(i).Interface().(type) {
		case []string:
			if values = v; len(field.Choices) > 0 {
				values = splitAll(v)
			}
		case string:
			values = []string{v}
		case bool:
			values = []string{strconv.FormatBool(v)}
		case time.Time:
			if !v.IsZero() {
				values = []string{v.Format(time.RFC3339Nano)}
			}
		}
		if len(values) == 0 || values[0] == "" && !field.Many() {
			continue
		}
		if err := field.Set(&f, values, now); err != nil {
			return f, err
		}
	}
	return f, f.Search(q.Q, now)
}

// describeFilter says what the parameters of FilterQuery mean.
func describeFilter(o *huma.Operation) {
	for _, p := range o.Parameters {
		field := service.FieldNamed(p.Name)
		if field == nil {
			continue
		}
		p.Description = "jobs " + field.Doc
		if field.Many() {
			p.Description += "; may be given several times"
		}
		p.Schema.Description = p.Description
	}
}

// jobFilter selects jobs in the body of a request, with the same names as in a query.
type jobFilter struct {
	fields map[string][]string // values by the names of service.FilterFields, and q
}

// Schema implements huma.SchemaProvider.
func (jobFilter) Schema(r huma.Registry) *huma.Schema {
	const name = "JobFilter"
	if r.Map()[name] == nil {
		s := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: false, Properties: map[string]*huma.Schema{
			"q": {Type: huma.TypeString, Description: "a search, such as: queue:mail error:Timeout died:1h invoice"},
		}}
		for i := range service.FilterFields {
			field := &service.FilterFields[i]
			s.Properties[field.Name] = schemaOf(field)
		}
		for _, p := range s.Properties {
			p.PrecomputeMessages()
		}
		s.PrecomputeMessages()
		r.Map()[name] = s
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

// schemaOf describes the values of a field.
func schemaOf(field *service.FilterField) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	switch {
	case field.Many():
		s = Names{}.Schema(nil)
	case field.IsFlag():
		s.Type = huma.TypeBoolean
	case field.IsTime():
		s.Format = "date-time"
	case field.IsNumber():
		low, high := -4294967296.0, 4294967295.0
		s.Type, s.Format, s.Minimum, s.Maximum = huma.TypeInteger, "int64", &low, &high
	}
	s.Description = "jobs " + field.Doc
	return s
}

// UnmarshalJSON implements json.Unmarshaler, for what the schema has admitted.
func (b *jobFilter) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	b.fields = make(map[string][]string, len(members))
	for name, value := range members {
		var values Names
		if json.Unmarshal(value, &values) != nil {
			values = Names{string(value)} // a number, or true or false
		}
		b.fields[name] = values
	}
	return nil
}

// filter converts the filter of the body for the service. It refuses empty conditions: in a list they mean any value,
// but a program that has lost a value must not change all jobs.
func (b *jobFilter) filter(now time.Time) (*service.JobFilter, error) {
	f := &service.JobFilter{}
	search := ""
	for _, name := range slices.Sorted(maps.Keys(b.fields)) {
		field, values := service.FieldNamed(name), b.fields[name]
		switch {
		case len(values) == 0, values[0] == "" && (field == nil || !field.Many()):
			return f, &service.Error{
				Code: service.CodeInvalid, Field: name, Detail: "is empty: leave it out to select jobs with any value",
			}
		case field == nil:
			search = values[0] // q, since the schema admits no other name
		default:
			if err := field.Set(f, values, now); err != nil {
				return f, err
			}
		}
	}
	return f, f.Search(search, now)
}

// splitAll takes values apart at commas.
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
