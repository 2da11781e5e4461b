package httpapi

import (
	"fmt"
	"testing"
)

// act starts an action and returns the operation.
func (f *apiFixture) act(body string) map[string]any {
	f.t.Helper()
	return f.call("POST", "/api/v1/job-actions", body).want(202)
}

// count is the number of jobs.
func (f *apiFixture) count() int {
	f.t.Helper()
	return len(f.call("GET", "/api/v1/jobs?limit=100", nil).want(200)["jobs"].([]any))
}

func TestActionWithADelayCanBeUndone(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q", "id": "one"})
	f.push(map[string]any{"queue": "q", "id": "two"})
	op := f.act(`{"action":"delete","filter":{"queue":"q"},"delay_s":3600}`)
	if op["state"] != "pending" || op["matched"] != 2.0 || op["begins_at"] == nil {
		t.Fatalf("the operation: %v", op)
	}
	f.call("DELETE", "/api/v1/operations/"+op["id"].(string), nil).want(200)
	op = f.call("GET", "/api/v1/operations/"+op["id"].(string)+"?wait=5s", nil).want(200)
	if op["state"] != "cancelled" || op["changed"] != 0.0 || f.count() != 2 {
		t.Errorf("after the undo: %v and %d jobs", op, f.count())
	}
}

func TestDelayedActionSkipsChangedJobs(t *testing.T) {
	t.Parallel()
	for _, selection := range []string{`"ids":["one","two"]`, `"filter":{"queue":"q"}`} {
		f := setupAPI(t, Options{})
		f.push(map[string]any{"queue": "q", "id": "one"})
		f.push(map[string]any{"queue": "q", "id": "two"})
		op := f.act(`{"action":"delete",` + selection + `,"delay_s":1}`)
		f.leaseOne()
		f.push(map[string]any{"queue": "q", "id": "new"})
		op = f.call("GET", "/api/v1/operations/"+op["id"].(string)+"?wait=10s", nil).want(200)
		if op["state"] != "done" || op["changed"] != 1.0 || op["skipped"] != 1.0 {
			t.Errorf("%s: %v", selection, op)
		}
		f.call("GET", "/api/v1/jobs/two", nil).want(404)
		if f.count() != 2 {
			t.Errorf("%s: %d jobs are left, want the one that runs and the new one", selection, f.count())
		}
	}
}

func TestActionsWithADelayAreBounded(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q", "id": "one"})
	f.call("POST", "/api/v1/job-actions", `{"action":"delete","ids":["one"],"delay_s":3601}`).want(422)
	for range 20 {
		f.act(`{"action":"delete","ids":["one"],"delay_s":3600}`)
	}
	f.call("POST", "/api/v1/job-actions", `{"action":"delete","ids":["one"],"delay_s":3600}`).want(429)
	if op := f.act(`{"action":"retry","ids":["one"]}`); op["state"] == "pending" {
		t.Errorf("an action without a delay: %v", fmt.Sprint(op))
	}
}
