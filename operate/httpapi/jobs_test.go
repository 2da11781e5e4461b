package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestSubmittedJobIsShown(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	a := f.call("POST", "/api/v1/jobs",
		`{"queue": "mail", "type": "Welcome", "args": [1, "two"], "priority": 3, "max_fails": 2}`)
	job := a.want(201)
	for name, want := range map[string]any{
		"queue": "mail", "type": "Welcome", "state": "ready", "priority": 3.0, "origin": "http", "max_fails": 2.0,
		"attempts": 0.0,
	} {
		if job[name] != want {
			t.Errorf("%s is %v, want %v", name, job[name], want)
		}
	}
	if got := a.header.Get("Location"); got != "/api/v1/jobs/"+job["id"].(string) {
		t.Errorf("Location %q", got)
	}
	shown := f.call("GET", a.header.Get("Location"), nil).want(200)
	if fmt.Sprint(shown["args"]) != "[1 two]" || shown["body_bytes"] != float64(len(`[1, "two"]`)) {
		t.Errorf("shown %v", shown)
	}
}

func TestDeadlineIsShownAndWhetherTheJobIsLate(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	submit := func(members string) string {
		return f.call("POST", "/api/v1/jobs", `{"queue":"q",`+members+`}`).want(201)["id"].(string)
	}
	wantLate := func(id string, late bool) {
		t.Helper()
		job := f.call("GET", "/api/v1/jobs/"+id, nil).want(200)
		if job["deadline"] == nil || (job["late"] == true) != late {
			t.Errorf("job %s has deadline %v and late %v, want late %v", id, job["deadline"], job["late"], late)
		}
	}
	done := submit(`"deadline_in_s":60,"retain_for_s":3600`)
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)
	at, waits := f.clock.Now().Add(time.Minute).Time().Format(time.RFC3339Nano), submit(`"deadline_in_s":60`)
	job := f.call("GET", "/api/v1/jobs/"+waits, nil).want(200)
	if job["deadline"] != at {
		t.Errorf("deadline %v, want %v", job["deadline"], at)
	}
	wantLate(waits, false)
	wantLate(done, false)
	f.clock.Advance(61 * time.Second)
	wantLate(waits, true)
	wantLate(done, false) // it had ended in time
	wantLate(submit(`"deadline":"`+at+`"`), true)
	f.call("POST", "/api/v1/schedules", `{"name":"s","every_s":60,"job":{"queue":"q","deadline":"`+at+`"}}`).
		problem(422, "invalid_request")
}

func TestBodiesAreReturnedUnchanged(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for _, body := range []string{
		`"args":[]`, `"args":[{"a":null}]`, `"body":"plain"`, `"body":"[1]"`, `"body":""`, `"body_base64":"/wA="`,
	} {
		job := f.call("POST", "/api/v1/jobs", `{"queue":"q",`+body+`}`).want(201)
		text := string(f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).text)
		if !strings.Contains(text, body) {
			t.Errorf("%s: %s", body, text)
		}
		_, leased := f.leaseOne()
		if again, _ := json.Marshal(leased); !strings.Contains(string(again), body) {
			t.Errorf("%s: leased as %s", body, again)
		}
	}
}

func TestBadSubmissionsNameTheField(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for body, field := range map[string]string{
		`{}`:                                           "body.queue",
		`{"queue":""}`:                                 "body.queue",
		`{"queue":7}`:                                  "body.queue",
		`{"queue":"q","args":{}}`:                      "body.args",
		`{"queue":"q","args":"x"}`:                     "body.args",
		`{"queue":"q","body":"a","args":[]}`:           "body.body",
		`{"queue":"q","body_base64":"*"}`:              "body.body_base64",
		`{"queue":"q","priority":"high"}`:              "body.priority",
		`{"queue":"q","priority":5000000000}`:          "body.priority",
		`{"queue":"q","colour":"red"}`:                 "body.colour",
		`{"queue":"q","run_at":"tomorrow"}`:            "body.run_at",
		`{"queue":"q","delay_s":-1}`:                   "body.delay_s",
		`{"queue":"q","deadline_in_s":-1}`:             "body.deadline_in_s",
		`{"queue":"q","lease_for_s":1e300}`:            "body.lease_for_s",
		`{"queue":"q","backoff":"linear"}`:             "body.backoff",
		`{"queue":"q","ephemeral":true}`:               "body.ephemeral",
		`{"queue":"q","after":["nothing"]}`:            "body.after[0]",
		`{"queue":"q","batch":"x"}`:                    "body.batch",
		`{"queue":"q","on_duplicate":"coalesce"}`:      "body.unique_key",
		`{"jobs":[{"queue":"q"},{"args":[]}]}`:         "body.jobs[1].queue",
		`{"queue":"q","jobs":[{"queue":"q"}]}`:         "body.jobs",
		`{"queue":"` + strings.Repeat("q", 513) + `"}`: "body.queue",
	} {
		p := f.call("POST", "/api/v1/jobs", body).problem(422, "invalid_request")
		errs, _ := p["errors"].([]any)
		if len(errs) == 0 || errs[0].(map[string]any)["location"] != field {
			t.Errorf("%.60s: %v, want the field %s", body, p["errors"], field)
		}
	}
	f.call("POST", "/api/v1/jobs", `{"queue":`).problem(400, "invalid_json")
	if jobs := f.call("GET", "/api/v1/jobs", nil).want(200)["jobs"].([]any); len(jobs) > 0 {
		t.Errorf("a refused submission left %v", jobs)
	}
}

func TestManyJobsAreOneCommitAndAllOrNone(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	var jobs []map[string]any
	for i := range 1000 {
		jobs = append(jobs, map[string]any{"queue": "q", "args": []int{i}})
	}
	f.engine.Flush() // what the start has left to commit
	before := f.engine.Committed()
	answered := f.call("POST", "/api/v1/jobs", map[string]any{"jobs": jobs}).want(201)["jobs"].([]any)
	if len(answered) != 1000 || f.engine.Committed() != before+1 {
		t.Errorf("%d jobs in %d commits", len(answered), f.engine.Committed()-before)
	}
}

func TestJobsAreNamedByKind(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q", "id": "order/1"})
	seq := fmt.Sprintf("%.0f", job["seq"])
	for _, name := range []string{"order/1", "id:order/1", "seq:" + seq, "H:here:" + seq, job["alias"].(string)} {
		if got := f.call("GET", "/api/v1/jobs/"+url.PathEscape(name), nil).want(200); got["seq"] != job["seq"] {
			t.Errorf("%s is %v", name, got)
		}
	}
	for _, name := range []string{seq, "0000" + seq, "H:there:" + seq, "order", "seq:", "seq:0" + seq, "seq:+" + seq} {
		if a := f.call("DELETE", "/api/v1/jobs/"+url.PathEscape(name), nil); a.status < 400 {
			t.Errorf("%s deletes a job", name)
		}
	}
	f.call("GET", "/api/v1/jobs/nothing", nil).problem(404, "job_not_found")
}

func TestDeleteHonoursIfMatch(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	a := f.call("POST", "/api/v1/jobs", `{"queue":"q"}`)
	path := "/api/v1/jobs/" + a.want(201)["id"].(string)
	f.leaseOne()
	ifMatch := func(etag string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("If-Match", etag) } }
	f.call("DELETE", path, nil, ifMatch(a.header.Get("ETag"))).problem(412, "job_changed")
	f.call("DELETE", path, nil, ifMatch("seven")).problem(422, "invalid_request")
	now := f.call("GET", path, nil).header.Get("ETag")
	f.call("DELETE", path, nil, ifMatch(now)).want(204)
	f.call("GET", path, nil).problem(404, "job_not_found")
}
