package httpapi

import "testing"

func TestFinishedJobsAreListed(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	one := f.push(map[string]any{"queue": "a", "type": "T"})
	f.push(map[string]any{"queue": "b"})
	f.call("DELETE", "/api/v1/jobs/"+one["id"].(string), nil).want(204)
	jobs := f.call("GET", "/api/v1/finished-jobs?queue=a", nil).want(200)["jobs"].([]any)
	if len(jobs) != 1 {
		t.Fatalf("%v", jobs)
	}
	if j := jobs[0].(map[string]any); j["id"] != one["id"] || j["kind"] != "cancelled" || j["type"] != "T" ||
		j["protocol"] != "http" || j["finished_at"] == nil {
		t.Errorf("%v", j)
	}
	if jobs := f.call("GET", "/api/v1/finished-jobs?offset=1", nil).want(200)["jobs"].([]any); len(jobs) != 0 {
		t.Errorf("%v", jobs)
	}
	f.call("GET", "/api/v1/finished-jobs?limit=0", nil).problem(422, "invalid_request")
}
