package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/operate/service"
)

func TestFieldsHaveTheirPlacesInTheRequest(t *testing.T) {
	t.Parallel()
	at := placesOf(reflect.TypeFor[struct {
		ScheduleName
		Page
		Body *struct {
			LeaseBody
			Name string `json:"name,omitempty"`
		}
		Key string `header:"Idempotency-Key"`
	}]())
	for field, want := range map[string]string{
		"": "body", "name": "body.name", "worker": "body.worker", "limit": "query.limit",
		"Idempotency-Key": "header.Idempotency-Key", "worker[3].x": "body.worker[3].x", "action": "", "body": "",
	} {
		if got := at.location(field); got != want {
			t.Errorf("%q is at %q, want %q", field, got, want)
		}
	}
	if got := placesOf(reflect.TypeFor[JobName]()).location(""); got != "" {
		t.Errorf("a request without a body has one at %q", got)
	}
	if got := placesOf(reflect.TypeFor[JobName]()).location("id"); got != "path.id" {
		t.Errorf("the id is at %q", got)
	}
}

// The scope of a limit is in the body of one request and in the query of another; an error about it names the place of
// its own request.
func TestAnErrorNamesThePlaceInItsRequest(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	refused := f.server.Service().RemoveLimit(t.Context(), service.Caller{}, "q", "odd", "")
	for method, want := range map[string]string{http.MethodPut: "body.scope", http.MethodDelete: "query.scope"} {
		in := map[string]reflect.Type{
			http.MethodPut:    reflect.TypeFor[struct{ Body service.LimitSpec }](),
			http.MethodDelete: reflect.TypeFor[limitName](),
		}[method]
		p := f.server.problemOf(refused, placesOf(in))
		if len(p.Errors) != 1 || p.Errors[0].Location != want {
			t.Errorf("%s: %+v, want %s", method, p.Errors, want)
		}
	}
	long := strings.Repeat("x", 513)
	for path, want := range map[string]string{
		"/queues/" + long + "/lease": "path.name", "/lease?queue=q&queue=" + long: "query.queue",
	} {
		p := f.call("POST", apiPath+path, nil).problem(422, "invalid_request")
		if got := p["errors"].([]any)[0].(map[string]any)["location"]; got != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	p := f.call("POST", apiPath+"/leases", object{"queues": []string{"q", long}}).problem(422, "invalid_request")
	if got := p["errors"].([]any)[0].(map[string]any)["location"]; got != "body.queues[1]" {
		t.Errorf("leases: %v", got)
	}
	p = f.call("GET", apiPath+"/events?job=seq:x", nil).problem(422, "invalid_request")
	if got := p["errors"].([]any)[0].(map[string]any)["location"]; got != "query.job" {
		t.Errorf("events: %v", got)
	}
}

// object is a part of the API's document.
type object = map[string]any

// apiDocument is the API's document, which a test keeps up to date.
var apiDocument = sync.OnceValue(func() (doc object) {
	text, err := os.ReadFile("openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		panic(err)
	}
	return doc
})

// members are the members of an object schema.
func members(schema object) object {
	all, _ := schema["properties"].(object)
	return all
}

// within returns a member of a member and so on; nil if there is none.
func within(o any, names ...string) any {
	for _, name := range names {
		named, _ := o.(object)
		o = named[name]
	}
	return o
}

// resolved is a schema without a reference.
func resolved(schema any) object {
	ref, _ := within(schema, "$ref").(string)
	if name, is := strings.CutPrefix(ref, "#/components/schemas/"); is {
		return resolved(within(apiDocument(), "components", "schemas", name))
	}
	s, _ := schema.(object)
	return s
}

// bodySchema is the schema of an operation's body; nil: it has none.
func bodySchema(operation any) object {
	return resolved(within(operation, "requestBody", "content", "application/json", "schema"))
}

// operationOf is the documented operation that answers a request; nil: none.
func operationOf(method, path string) any {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for pattern, item := range apiDocument()["paths"].(object) {
		if slices.EqualFunc(strings.Split(pattern, "/"), parts, func(want, got string) bool {
			return want == got || strings.HasPrefix(want, "{")
		}) {
			if o := within(item, strings.ToLower(method)); o != nil {
				return o
			}
		}
	}
	return nil
}

// hasPlace reports whether an operation has a field at a location.
func hasPlace(operation any, location string) bool {
	place, name, _ := strings.Cut(location, ".")
	if place != body {
		parameters, _ := within(operation, "parameters").([]any)
		return slices.ContainsFunc(parameters, func(p any) bool {
			return within(p, "in") == place && within(p, "name") == name
		})
	}
	schema := bodySchema(operation)
	for name != "" && schema != nil && len(members(schema)) > 0 {
		end := strings.IndexAny(name, ".[")
		if end < 0 {
			end = len(name)
		}
		schema = resolved(within(schema, "properties", name[:end]))
		if name = name[end:]; strings.HasPrefix(name, "[") {
			_, name, _ = strings.Cut(name, "]")
			schema = resolved(schema["items"])
		}
		name = strings.TrimPrefix(name, ".")
		if schema != nil && len(members(schema)) == 0 {
			return true // any value, or one that has no members of its own in the document
		}
	}
	return schema != nil
}

// checkLocations fails the test if an error of the service names no place of the request, or one that the document does
// not have. It returns the locations.
func checkLocations(t *testing.T, method, path string, answer []byte) (found []string) {
	t.Helper()
	var p Problem
	operation := operationOf(method, path)
	if json.Unmarshal(answer, &p) != nil || operation == nil {
		return nil
	}
	if p.Code == codeInvalid && len(p.Errors) == 0 && bodySchema(operation) != nil {
		t.Errorf("%s %s: %s: the error has no place", method, path, answer)
	}
	for _, e := range p.Errors {
		if e.Message != p.Detail {
			continue // of huma, which may name a field that does not exist, to say so
		}
		found = append(found, e.Location)
		if !hasPlace(operation, e.Location) {
			t.Errorf("%s %s: the document has no %s: %s", method, path, e.Location, answer)
		}
	}
	return found
}

// sample is a value that a schema admits.
func sample(schema object) any {
	if all, is := schema["enum"].([]any); is {
		return all[0]
	}
	switch kind := schema["type"]; {
	case kind == "integer" || kind == "number":
		return 1
	case kind == "boolean":
		return true
	case kind == "object":
		o := object{}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			o[name.(string)] = sample(resolved(within(schema, "properties", name.(string))))
		}
		return o
	case schema["items"] != nil:
		return []any{sample(resolved(schema["items"]))}
	case schema["format"] == "date-time":
		return "2026-01-02T03:04:05Z"
	}
	return "q"
}

// oddValues are values that a schema admits or not, and the service refuses somewhere.
func oddValues(schema object) []any {
	all := []any{"", "seq:x", "?", "odd", strings.Repeat("x", 600), -1, 1e11, []any{}, []any{"seq:x"}, object{}}
	if enum, is := schema["enum"].([]any); is {
		all = append(all, enum...)
	}
	for name, member := range members(schema) {
		for _, odd := range oddValues(resolved(member))[:4] {
			o, _ := sample(schema).(object)
			o = maps.Clone(o)
			o[name] = odd
			all = append(all, o, []any{o})
		}
	}
	return all
}

// oddRequest is a request with one odd field.
type oddRequest struct{ method, path, body string }

// oddRequests are the requests to an operation that have one odd field each.
func oddRequests(method, pattern string, operation any) (all []oddRequest) {
	required, query := url.Values{}, map[string]object{}
	path := pattern
	parameters, _ := within(operation, "parameters").([]any)
	for _, p := range parameters {
		name, schema := within(p, "name").(string), resolved(within(p, "schema"))
		switch within(p, "in") {
		case "path":
			path = strings.ReplaceAll(path, "{"+name+"}", "q")
		case "query":
			query[name] = schema
			if within(p, "required") == true {
				required.Set(name, "q")
			}
		}
	}
	schema, text := bodySchema(operation), ""
	if schema != nil {
		text = encode(sample(schema))
	}
	for _, odd := range []string{"seq:x", "%3F", strings.Repeat("x", 600)} {
		all = append(all, oddRequest{method, strings.ReplaceAll(path, "/q", "/"+odd) + "?" + required.Encode(), text})
	}
	for name := range query {
		for _, odd := range []string{"seq:x", "odd", "-1", strings.Repeat("x", 600)} {
			q := maps.Clone(required)
			q.Set(name, odd)
			all = append(all, oddRequest{method, path + "?" + q.Encode(), text})
		}
	}
	for name, member := range members(schema) {
		for _, odd := range oddValues(resolved(member)) {
			o := maps.Clone(sample(schema).(object))
			o[name] = odd
			all = append(all, oddRequest{method, path + "?" + required.Encode(), encode(o)})
		}
	}
	return all
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(text)
}

// A field that an error names exists in the document of its route, at that place. Each route gets requests with one odd
// field each.
func TestErrorsOfAllRoutesNameFieldsOfTheirRequests(t *testing.T) {
	t.Parallel()
	var changes []string
	f := setupAPI(t, Options{Cluster: &toyCluster{changes: &changes}})
	handler := f.server.HTTP().Handler
	named := map[string]bool{}
	for pattern, item := range apiDocument()["paths"].(object) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			operation := within(item, method)
			if operation == nil {
				continue
			}
			for _, odd := range oddRequests(strings.ToUpper(method), pattern, operation) {
				ctx, cancel := context.WithCancel(t.Context())
				if pattern == apiPath+"/events" { // a stream, which ends with the request
					time.AfterFunc(20*time.Millisecond, cancel)
				}
				r := httptest.NewRequestWithContext(ctx, odd.method, "http://localhost"+odd.path,
					strings.NewReader(odd.body))
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				cancel()
				if w.Code == http.StatusInternalServerError {
					t.Errorf("%s %s %s: %s", odd.method, odd.path, odd.body, w.Body)
				}
				for _, location := range checkLocations(t, odd.method, odd.path, w.Body.Bytes()) {
					named[fmt.Sprint(method, " ", pattern, " ", location)] = true
				}
			}
		}
	}
	if len(named) < 60 {
		t.Errorf("the requests met only %d errors: %v", len(named), slices.Sorted(maps.Keys(named)))
	}
}
