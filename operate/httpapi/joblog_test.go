package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

// logOf shows the texts of the log of a job after a cursor, and returns the next cursor.
func (f *apiFixture) logOf(id any, cursor string) (texts []string, next string) {
	f.t.Helper()
	a := f.call("GET", fmt.Sprint("/api/v1/jobs/", id, "/log?cursor=", cursor), nil).want(200)
	for _, l := range a["lines"].([]any) {
		line := l.(map[string]any)
		if line["at"] == nil {
			f.t.Errorf("a line without its time: %v", line)
		}
		texts = append(texts, line["text"].(string))
	}
	return texts, a["cursor"].(string)
}

func TestLogOfAJobIsReadInParts(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q", "retain_for_s": 60})
	if lines, cursor := f.logOf(job["id"], ""); lines != nil || cursor != "0" {
		t.Errorf("before: %v, %s", lines, cursor)
	}
	token, _ := f.leaseOne()
	a := f.call("POST", "/api/v1/leases/"+token+"/log", `{"lines":["one","two <b>"]}`).want(200)
	if a["cancel_requested"] != false || a["lease_until"] == nil {
		t.Errorf("answer %v", a)
	}
	lines, cursor := f.logOf(job["id"], "")
	if fmt.Sprint(lines) != "[one two <b>]" {
		t.Errorf("lines %q", lines)
	}
	if more, same := f.logOf(job["id"], cursor); more != nil || same != cursor {
		t.Errorf("after the last line: %q, %s", more, same)
	}
	f.stopAll()
	if a := f.call("POST", "/api/v1/leases/"+token+"/log",
		`{"lines":["three"]}`).want(200); a["cancel_requested"] != true {
		t.Errorf("to a worker that should stop: %v", a)
	}
	if more, _ := f.logOf(job["id"], cursor); fmt.Sprint(more) != "[three]" {
		t.Errorf("behind the cursor: %q", more)
	}
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)
	f.call("POST", "/api/v1/leases/"+token+"/log", `{"lines":["late"]}`).problem(410, "lease_lost")
	if all := f.call("GET", fmt.Sprint("/api/v1/jobs/", job["id"], "/log"),
		nil).want(200); len(all["lines"].([]any)) != 3 || all["state"] != "done" {
		t.Errorf("of the job that is done: %v", all)
	}
	f.call("DELETE", fmt.Sprint("/api/v1/jobs/", job["id"]), nil).want(204)
	f.call("GET", fmt.Sprint("/api/v1/jobs/", job["id"], "/log"), nil).problem(404, "job_not_found")
}

func TestLongLogSaysHowManyLinesAreMissing(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q"})
	token, _ := f.leaseOne()
	body := map[string]any{"lines": strings.Split(strings.Repeat("x,", 999)+"x", ",")}
	f.call("POST", "/api/v1/leases/"+token+"/log", body).want(200)
	f.call("POST", "/api/v1/leases/"+token+"/log", body).want(200)
	a := f.call("GET", fmt.Sprint("/api/v1/jobs/", job["id"], "/log"), nil).want(200)
	missing := 0.0
	for _, l := range a["lines"].([]any) {
		if n, gap := l.(map[string]any)["missing"].(float64); gap {
			missing += n
		}
	}
	if n := len(a["lines"].([]any)); n != 1001 || missing != 1000 || a["cursor"] != "2000" {
		t.Errorf("%d lines, %v missing, cursor %v", n, missing, a["cursor"])
	}
}

func TestBadLogLinesAreRefused(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q"})
	token, _ := f.leaseOne()
	for _, body := range []string{
		`{}`, `{"lines":[]}`, `{"lines":"x"}`, `{"lines":[1]}`, `{"lines":["` + strings.Repeat(`","`, 1000) + `"]}`,
	} {
		f.call("POST", "/api/v1/leases/"+token+"/log", body).problem(422, "invalid_request")
	}
	f.call("POST", "/api/v1/leases/nothing/log", `{"lines":["x"]}`).problem(404, "invalid_lease")
	for _, cursor := range []string{"x", "-1", "4294967296"} {
		f.call("GET", fmt.Sprint("/api/v1/jobs/", job["id"], "/log?cursor=", cursor), nil).problem(422,
			"invalid_request")
	}
	f.call("GET", "/api/v1/jobs/nothing/log", nil).problem(404, "job_not_found")
}

// A principal may read the logs of jobs in queues that it may read, and may append to the logs of jobs that it has
// leased.
func TestLogNeedsTheRoleForItsQueue(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Access: principals(t, map[string][]string{
		"root": {"admin"}, "worker": {"consume:a"}, "reader": {"read:a"}, "other": {"consume:b", "read:b"},
	})})
	job := f.call("POST", "/api/v1/jobs", `{"queue":"a"}`, as("root")).want(201)
	token := f.call("POST", "/api/v1/queues/a/lease", nil, as("worker")).want(200)["lease"].(string)
	f.call("POST", "/api/v1/leases/"+token+"/log", `{"lines":["x"]}`, as("worker")).want(200)
	f.call("POST", "/api/v1/leases/"+token+"/log", `{"lines":["x"]}`, as("other")).problem(403, "forbidden")
	f.call("POST", "/api/v1/leases/"+token+"/log", `{"lines":["x"]}`, as("reader")).problem(403, "forbidden")
	path := fmt.Sprint("/api/v1/jobs/", job["id"], "/log")
	f.call("GET", path, nil, as("reader")).want(200)
	f.call("GET", path, nil, as("worker")).problem(403, "forbidden")
	f.call("GET", path, nil, as("other")).problem(404, "job_not_found")
}

func TestJobInMemoryHasNoLog(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("PATCH", "/api/v1/queues/q", `{"policy":{"durability":"none"}}`).want(200)
	f.push(map[string]any{"queue": "q"})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/log", `{"lines":["x"]}`).problem(409, "wrong_state")
}
