package httpapi

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// with sets a header of a request.
func with(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestSchedulesAreMadeChangedRunAndRemoved(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	const path = "/api/v1/schedules/nightly%20report"
	made := f.call("PUT", path, `{"cron": "0 3 * * *", "zone": "Europe/Berlin", "missed": "one",
		"job": {"queue": "reports", "type": "nightly", "args": [1], "delay_s": 60}}`, with("If-None-Match", "*"))
	v := made.want(200)
	if v["name"] != "nightly report" || v["queue"] != "reports" || v["next_at"] == nil || v["missed"] != "one" ||
		v["from_config"] != false {
		t.Errorf("made %v", v)
	}
	etag := made.header.Get("ETag")
	f.call("PUT", path, `{"every_s": 60, "job": {"queue": "reports"}}`, with("If-None-Match", "*")).problem(409,
		"already_exists")
	f.call("PUT", path, `{"every_s": 60, "job": {"queue": "reports"}}`, with("If-Match", `"999"`)).problem(412,
		"job_changed")
	f.call("PUT", path, `{"every_s": 60, "job": {"queue": "reports"}}`, with("If-Match", etag)).want(200)
	if v := f.call("PATCH", path, `{"paused": true}`).want(200); v["paused"] != true {
		t.Errorf("paused %v", v)
	}
	ran := f.call("POST", path+"/run", nil).want(200)
	if job := f.call("GET", "/api/v1/jobs/"+ran["job"].(string), nil).want(200); job["queue"] != "reports" ||
		job["state"] != "ready" {
		t.Errorf("ran %v", job)
	}
	if list := f.call("GET", "/api/v1/schedules", nil).want(200)["schedules"].([]any); len(list) != 1 {
		t.Errorf("listed %v", list)
	}
	f.call("DELETE", path, nil).want(204)
	f.call("GET", path, nil).problem(404, "schedule_not_found")
	f.call("DELETE", path, nil).problem(404, "schedule_not_found")
	f.call("POST", path+"/run", nil).problem(404, "schedule_not_found")
}

func TestBadSchedulesNameTheField(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for _, body := range []string{
		`{"job": {"queue": "q"}}`,
		`{"cron": "0 3 * * *", "every_s": 5, "job": {"queue": "q"}}`,
		`{"cron": "not cron", "job": {"queue": "q"}}`,
		`{"cron": "0 3 * * *", "zone": "Nowhere/Land", "job": {"queue": "q"}}`,
		`{"every_s": 5, "job": {}}`,
		`{"every_s": 5, "job": {"queue": "q", "run_at": "2030-01-01T00:00:00Z"}}`,
		`{"every_s": 5, "missed": "never", "job": {"queue": "q"}}`,
	} {
		if p := f.call("PUT", "/api/v1/schedules/s", body).problem(422, "invalid_request"); p["errors"] == nil {
			t.Errorf("%s: no field is named", body)
		}
	}
	f.call("GET", "/api/v1/schedules/s", nil).problem(404, "schedule_not_found")
}

func TestASubmissionUnderAKeyIsAdmittedOnce(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	const body = `{"jobs": [{"queue": "q", "args": [1]}, {"queue": "q", "id": "own", "args": [2]}]}`
	ids := func(a answer) (ids []any) {
		for _, j := range a.want(201)["jobs"].([]any) {
			ids = append(ids, j.(map[string]any)["id"])
		}
		return ids
	}
	first := ids(f.call("POST", "/api/v1/jobs", body, with("Idempotency-Key", "k")))
	again := ids(f.call("POST", "/api/v1/jobs", body, with("Idempotency-Key", "k")))
	if len(first) != 2 || first[0] != again[0] || first[1] != "own" || again[1] != "own" {
		t.Errorf("first %v, again %v", first, again)
	}
	if n := f.call("GET", "/api/v1/queues/q", nil).want(200)["ready"]; n != 2.0 {
		t.Errorf("%v jobs", n)
	}
	f.call("POST", "/api/v1/jobs", `{"queue": "q"}`, with("Idempotency-Key", "k")).problem(422,
		"idempotency_key_reused")
	f.call("POST", "/api/v1/jobs", `{"queue": "q"}`, with("Idempotency-Key", "other")).want(201)
	// A refused submission does not use up the idempotency key.
	f.call("POST", "/api/v1/jobs", `{"queue": "q", "id": "own"}`, with("Idempotency-Key", "third")).problem(409,
		"duplicate_id")
	f.call("POST", "/api/v1/jobs", `{"queue": "q", "id": "fresh"}`, with("Idempotency-Key", "third")).want(201)
	// A job that has ended in the meantime is not admitted again.
	single := f.call("POST", "/api/v1/jobs", `{"queue": "one"}`, with("Idempotency-Key", "one")).want(201)
	lease := f.call("POST", "/api/v1/queues/one/lease", nil).want(200)
	f.call("POST", "/api/v1/leases/"+lease["lease"].(string)+"/complete", nil).want(204)
	if v := f.call("POST", "/api/v1/jobs", `{"queue": "one"}`,
		with("Idempotency-Key", "one")).want(201); v["id"] != single["id"] || v["state"] != "done" {
		t.Errorf("repeated after the end: %v", v)
	}
	f.advance(25 * time.Hour)
	if v := f.call("POST", "/api/v1/jobs", `{"queue": "one"}`,
		with("Idempotency-Key", "one")).want(201); v["id"] == single["id"] {
		t.Error("a key of the day before still counts")
	}
}

func TestTimelinesAreShown(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q"})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/fail", `{"error_class": "Broken", "message": "no way"}`).want(204)
	timeline, _ := f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)["timeline"].([]any)
	var kinds []any
	for _, e := range timeline {
		kinds = append(kinds, e.(map[string]any)["kind"])
	}
	if !slices.Contains(kinds, any("failed")) {
		t.Errorf("timeline %v", timeline)
	}
}
