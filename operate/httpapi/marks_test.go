package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"broker/access"
	"broker/operate/service"
)

// version sends the version of a worker's program.
func version(v string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Broker-Worker-Version", v) }
}

func TestFailuresAreCountedByTheVersionOfTheWorker(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for i, v := range []string{"1.0", "2.0", "2.0", ""} {
		f.call("POST", "/api/v1/jobs", `{"queue":"q","max_fails":1}`).want(201)
		lease := f.call("POST", "/api/v1/queues/q/lease", "{}", version(v)).want(200)
		if got := lease["job"].(map[string]any)["worker_version"]; v != "" && got != v {
			t.Errorf("leased as version %v", got)
		}
		path := "/api/v1/leases/" + lease["lease"].(string) + "/fail"
		f.call("POST", path, fmt.Sprintf(`{"error_class":"E","message":"m%d","final":true}`, i)).want(204)
	}
	list := f.call("GET", "/api/v1/jobs?state=dead&groups=5", nil).want(200)
	group := list["groups"].([]any)[0].(map[string]any)
	got := ""
	for _, v := range group["versions"].([]any) {
		v := v.(map[string]any)
		got += fmt.Sprint(v["worker_version"], "=", v["jobs"], " ")
	}
	if got != "2.0=2 =1 1.0=1 " || group["jobs"] != 4.0 || group["first_hour"] == nil {
		t.Errorf("versions %q of %v", got, group)
	}
	for query, want := range map[string]int{"worker_version=2.0": 2, "worker_version=none": 1, "worker_version=3": 0} {
		if n := len(f.call("GET", "/api/v1/jobs?"+query, nil).want(200)["jobs"].([]any)); n != want {
			t.Errorf("%s finds %d jobs, want %d", query, n, want)
		}
	}
	job := f.call("GET", "/api/v1/jobs?worker_version=1.0", nil).want(200)["jobs"].([]any)[0].(map[string]any)
	one := f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil)
	if !strings.Contains(string(one.text), `"version":"1.0"`) {
		t.Errorf("the timeline lacks the version: %s", one.text)
	}
}

func TestMarksAreKeptInOrderListedAndRemoved(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Access: principals(t, map[string][]string{
		"root": {"admin"}, "ops": {"operate"}, "reader": {"read:mail"}, "producer": {"produce"},
	})})
	add := func(body, who string) answer { return f.call("POST", "/api/v1/marks", body, as(who)) }
	first := add(`{"text":"billing 4.2","version":"4.2"}`, "ops").want(201)
	if first["id"] != "mark-1" || first["who"] != "ops" || first["version"] != "4.2" {
		t.Errorf("mark %v", first)
	}
	add(`{"text":"x"}`, "reader").problem(403, "forbidden")
	add(`{"text":"x","at":"2001-01-01T00:00:00Z"}`, "ops").problem(422, "invalid_request")
	for i := range 205 {
		add(fmt.Sprintf(`{"text":"deploy %d"}`, i), "ops").want(201)
	}
	marks := f.call("GET", "/api/v1/marks", nil, as("reader")).want(200)["marks"].([]any)
	if len(marks) != 200 {
		t.Fatalf("%d marks", len(marks))
	}
	f.call("GET", "/api/v1/marks", nil, as("producer")).problem(403, "forbidden")
	f.call("DELETE", "/api/v1/marks/mark-206", nil, as("reader")).problem(403, "forbidden")
	f.call("DELETE", "/api/v1/marks/mark-206", nil, as("ops")).want(204)
	f.call("DELETE", "/api/v1/marks/mark-206", nil, as("ops")).problem(404, "mark_not_found")
	audit := string(f.call("GET", "/api/v1/audit?limit=2", nil, as("root")).text)
	if !strings.Contains(audit, `"action":"mark.remove"`) || !strings.Contains(audit, `"action":"mark.add"`) {
		t.Errorf("audit %s", audit)
	}
}

func TestMarksSurviveARestart(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("POST", "/api/v1/marks", `{"text":"one"}`).want(201)
	f.call("POST", "/api/v1/marks", `{"text":"two"}`).want(201)
	f.call("DELETE", "/api/v1/marks/mark-1", nil).want(204)
	again, err := service.New(service.Options{Broker: f.engine})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	marks, err := again.ListMarks(service.Caller{Principal: access.Everyone})
	if err != nil || len(marks) != 1 || marks[0].Text != "two" {
		t.Errorf("marks %v, %v", marks, err)
	}
}
