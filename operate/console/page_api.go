package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// apiDoc is the part of the OpenAPI document that the page shows.
type apiDoc struct {
	Info struct {
		Version, Description string
	}
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Schemas map[string]*apiSchema }
}

type apiSchema struct {
	Ref         string `json:"$ref"`
	Type        any    // one name or several
	Format      string
	Description string
	Enum        []any
	Items       *apiSchema
	OneOf       []*apiSchema
	Properties  map[string]*apiSchema
	Required    []string
}

type apiContent map[string]struct{ Schema *apiSchema }

type apiOperation struct {
	ID          string `json:"operationId"`
	Summary     string
	Description string
	Tags        []string
	Parameters  []struct {
		Name, In, Description string
		Schema                *apiSchema
	}
	RequestBody *struct{ Content apiContent }
	Responses   map[string]struct {
		Description string
		Content     apiContent
	}
}

// apiRow is a row of the page: an operation.
type apiRow struct {
	ID, Verb, Path, Summary, Description string
	Parameters                           []apiField
	Parts                                []apiPart
}

// apiPart is the body of a request or response.
type apiPart struct {
	Title, Type string
	Fields      []apiField
}

type apiField struct {
	Name, Type, About string
	Required          bool
}

type apiSection struct {
	Name string
	Rows []apiRow
}

type apiData struct {
	Version, Description string
	Sections             []apiSection
}

func apiPage(r *request) (*view, error) {
	data, err := r.console.api()
	if err != nil {
		return nil, err
	}
	return &view{page: "api", title: "API", nav: "api", data: data, still: true}, nil
}

// readAPI builds the page from an OpenAPI document.
func readAPI(document func() []byte) (*apiData, error) {
	if document == nil {
		return &apiData{}, nil
	}
	var doc apiDoc
	if err := json.Unmarshal(document(), &doc); err != nil {
		return nil, fmt.Errorf("read the description of the API: %w", err)
	}
	d := &apiData{Version: doc.Info.Version, Description: doc.Info.Description}
	bySection := map[string]*apiSection{}
	for path, verbs := range doc.Paths {
		for verb, raw := range verbs {
			var op apiOperation
			if json.Unmarshal(raw, &op) != nil || op.ID == "" {
				continue // not an operation
			}
			name := "other"
			if len(op.Tags) > 0 {
				name = op.Tags[0]
			}
			if bySection[name] == nil {
				bySection[name] = &apiSection{Name: name}
			}
			bySection[name].Rows = append(bySection[name].Rows, doc.row(path, verb, &op))
		}
	}
	for _, s := range bySection {
		slices.SortFunc(s.Rows,
			func(a, b apiRow) int { return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Verb, b.Verb)) })
		d.Sections = append(d.Sections, *s)
	}
	slices.SortFunc(d.Sections, func(a, b apiSection) int { return strings.Compare(a.Name, b.Name) })
	return d, nil
}

func (doc *apiDoc) row(path, verb string, op *apiOperation) apiRow {
	row := apiRow{ID: op.ID, Verb: strings.ToUpper(verb), Path: path, Summary: op.Summary, Description: op.Description}
	for _, p := range op.Parameters {
		row.Parameters = append(row.Parameters,
			apiField{Name: p.Name, Type: p.In + ", " + typeName(p.Schema), About: p.Description})
	}
	if op.RequestBody != nil {
		row.Parts = doc.parts(row.Parts, "Body", op.RequestBody.Content)
	}
	statuses := make([]string, 0, len(op.Responses))
	for status := range op.Responses {
		if status < "400" {
			statuses = append(statuses, status)
		}
	}
	slices.Sort(statuses)
	for _, status := range statuses {
		answer := op.Responses[status]
		title := status + " " + answer.Description
		before := len(row.Parts)
		if row.Parts = doc.parts(row.Parts, title, answer.Content); len(row.Parts) == before {
			row.Parts = append(row.Parts, apiPart{Title: title})
		}
	}
	return row
}

// parts adds the schema of a body.
func (doc *apiDoc) parts(parts []apiPart, title string, content apiContent) []apiPart {
	for _, media := range content {
		forms := []*apiSchema{media.Schema}
		if media.Schema != nil && len(media.Schema.OneOf) > 0 {
			forms = media.Schema.OneOf
		}
		for _, s := range forms {
			parts = append(parts, apiPart{Title: title, Type: typeName(s), Fields: doc.fields(s)})
		}
	}
	slices.SortStableFunc(parts, func(a, b apiPart) int { // the body of the request before those of the responses
		return cmp.Or(strings.Compare(b.Title[:1], a.Title[:1]), strings.Compare(a.Title, b.Title))
	})
	return parts
}

// fields returns the members of an object.
func (doc *apiDoc) fields(s *apiSchema) (fields []apiField) {
	if s != nil && s.Ref != "" {
		s = doc.Components.Schemas[lastPart(s.Ref)]
	}
	if s == nil {
		return nil
	}
	for name, member := range s.Properties {
		if name == "$schema" {
			continue
		}
		about := member.Description
		if len(member.Enum) > 0 {
			var values []string
			for _, v := range member.Enum {
				values = append(values, fmt.Sprint(v))
			}
			about = strings.TrimPrefix(about+"; one of "+strings.Join(values, ", "), "; ")
		}
		fields = append(fields,
			apiField{Name: name, Type: typeName(member), About: about, Required: slices.Contains(s.Required, name)})
	}
	slices.SortFunc(fields, func(a, b apiField) int { return strings.Compare(a.Name, b.Name) })
	return fields
}

func lastPart(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// typeName returns the displayed name of a schema.
func typeName(s *apiSchema) string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		return lastPart(s.Ref)
	case len(s.OneOf) > 0:
		var names []string
		for _, one := range s.OneOf {
			names = append(names, typeName(one))
		}
		return strings.Join(names, " or ")
	case s.Items != nil:
		return "array of " + typeName(s.Items)
	}
	name := "any"
	if text, ok := s.Type.(string); ok {
		name = text
	}
	if several, ok := s.Type.([]any); ok {
		var names []string
		for _, one := range several {
			if one != "null" {
				names = append(names, fmt.Sprint(one))
			}
		}
		name = strings.Join(names, " or ")
	}
	if s.Format != "" {
		name += " (" + s.Format + ")"
	}
	return name
}
