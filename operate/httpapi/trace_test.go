package httpapi

import (
	"net/http"
	"testing"
)

const (
	testParent  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	otherParent = "00-11111111111111111111111111111111-2222222222222222-00"
)

// traced adds the headers of a trace context to a request.
func traced(parent string, states ...string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("traceparent", parent)
		r.Header["Tracestate"] = states
	}
}

func TestTheTraceOfASubmissionReachesTheWorker(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for name, c := range map[string]struct {
		body          string
		headers       func(*http.Request)
		parent, state string
	}{
		"headers": {`{"queue":"q"}`, traced(testParent, "a=1", "b=2"), testParent, "a=1,b=2"},
		"a list":  {`{"jobs":[{"queue":"q"}]}`, traced(testParent), testParent, ""},
		"members": {
			`{"queue":"q","traceparent":"` + testParent + `","tracestate":"a=1"}`, traced(otherParent, "b=2"),
			testParent, "a=1",
		},
		"none":                 {`{"queue":"q"}`, func(*http.Request) {}, "", ""},
		"an invalid header":    {`{"queue":"q"}`, traced("00-0-0-0", "a=1"), "", ""},
		"an invalid member":    {`{"queue":"q","traceparent":"?","tracestate":"a=1"}`, func(*http.Request) {}, "", ""},
		"a state without more": {`{"queue":"q","tracestate":"a=1"}`, func(*http.Request) {}, "", ""},
	} {
		f.call("POST", "/api/v1/jobs", c.body, c.headers).want(201)
		a := f.call("POST", "/api/v1/queues/q/lease", nil)
		job := a.want(200)["job"].(map[string]any)
		for member, want := range map[string]string{"traceparent": c.parent, "tracestate": c.state} {
			if got, _ := job[member].(string); got != want {
				t.Errorf("%s: the job has %s %q", name, member, got)
			}
			if _, there := a.header[http.CanonicalHeaderKey(member)]; a.header.Get(member) != want ||
				there != (want != "") {
				t.Errorf("%s: the answer has %s %q", name, member, a.header[http.CanonicalHeaderKey(member)])
			}
		}
	}
}

func TestAJobShowsItsTrace(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.call("POST", "/api/v1/jobs", `{"queue":"q"}`, traced(testParent)).want(201)
	id := job["id"].(string)
	if shown := f.call("GET", "/api/v1/jobs/"+id, nil).want(200); job["traceparent"] != testParent ||
		shown["traceparent"] != testParent {
		t.Errorf("submitted as %v, shown as %v", job, shown)
	}
	f.call("PATCH", "/api/v1/jobs/"+id, `{"priority":1}`).want(200)
	f.call("DELETE", "/api/v1/jobs/"+id, nil).want(204)
	entries := f.call("GET", "/api/v1/audit", nil).want(200)["entries"].([]any)
	if len(entries) != 2 {
		t.Errorf("audited as %v", entries)
	}
	for _, e := range entries {
		if e.(map[string]any)["trace_id"] != testParent[3:35] {
			t.Errorf("audited as %v", e)
		}
	}
}

// A client that repeats a request starts a new span for each attempt.
func TestAnIdempotencyKeyStandsForSubmissionsOfAnyTrace(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	key := func(r *http.Request) { r.Header.Set("Idempotency-Key", "k") }
	first := f.call("POST", "/api/v1/jobs", `{"queue":"q"}`, key, traced(testParent)).want(201)
	again := f.call("POST", "/api/v1/jobs", `{"queue":"q"}`, key, traced(otherParent)).want(201)
	if first["id"] != again["id"] {
		t.Errorf("%v was submitted again as %v", first, again)
	}
}
