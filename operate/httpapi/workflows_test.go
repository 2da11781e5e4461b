package httpapi

import (
	"fmt"
	"testing"
)

// finishedAct runs an action on many jobs and waits until it has finished.
func (f *apiFixture) finishedAct(body string) map[string]any {
	f.t.Helper()
	return f.call("POST", "/api/v1/job-actions?wait=5s", body).want(202)
}

func TestAWorkflowIsShownCancelledAndRetriedAsOne(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q", "id": "top", "max_fails": 1})
	f.push(map[string]any{"queue": "q", "id": "other"})
	f.push(map[string]any{"queue": "q", "id": "child", "parent": "top"})
	f.push(map[string]any{"queue": "r", "id": "last", "after": []string{"child", "other"}})

	shown := func(id string) (text string) {
		flow := f.call("GET", "/api/v1/workflows/"+id, nil).want(200)
		for _, j := range flow["jobs"].([]any) {
			j := j.(map[string]any)
			text += fmt.Sprint(j["id"], " ", j["state"], " ", j["depth"], "; ")
		}
		return fmt.Sprint(text, flow["total"])
	}
	if got := shown("top"); got != "top ready 0; child blocked 1; last blocked 2; 3" {
		t.Errorf("below top: %s", got)
	}
	if got := shown("child"); got != "child blocked 0; last blocked 1; 2" {
		t.Errorf("below child: %s", got)
	}
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/fail", map[string]any{"message": "no"}).want(204)
	if states := f.call("GET", "/api/v1/workflows/top", nil).want(
		200,
	)["states"]; fmt.Sprint(states) != "map[blocked:2 dead:1 done:0 leased:0 ready:0 retrying:0 scheduled:0]" {
		t.Errorf("states %v", states)
	}
	if op := f.finishedAct(`{"action":"retry","filter":{"workflow":"top","state":"dead"}}`); op["changed"] != 1.0 {
		t.Errorf("retried: %v", op)
	}
	if op := f.finishedAct(`{"action":"cancel","filter":{"workflow":"top"}}`); op["changed"] != 3.0 {
		t.Errorf("cancelled: %v", op)
	}
	f.call("GET", "/api/v1/jobs/other", nil).want(200)
	f.call("GET", "/api/v1/workflows/top", nil).problem(404, "job_not_found")
}

func TestAWorkflowThatFailedAsAWholeIsRetriedInItsOrder(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q", "id": "top", "max_fails": 1})
	f.push(map[string]any{"queue": "q", "id": "middle", "after": []string{"top"}, "on_broken": "fail"})
	f.push(map[string]any{"queue": "q", "id": "last", "after": []string{"middle"}, "on_broken": "fail"})
	f.push(map[string]any{"queue": "q", "id": "waits", "after": []string{"middle"}})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/fail", map[string]any{"message": "no"}).want(204)
	want := func(states string, total float64) {
		t.Helper()
		if flow := f.call("GET", "/api/v1/workflows/top",
			nil).want(200); fmt.Sprint(flow["states"]) != "map["+states+"]" || flow["total"] != total {
			t.Errorf("%v of %v, want %s", flow["states"], flow["total"], states)
		}
	}
	want("blocked:1 dead:3 done:0 leased:0 ready:0 retrying:0 scheduled:0", 4)
	if op := f.finishedAct(`{"action":"retry","filter":{"workflow":"top"}}`); op["matched"] != 3.0 ||
		op["changed"] != 3.0 {
		t.Errorf("retried: %v", op)
	}
	want("blocked:3 dead:0 done:0 leased:0 ready:1 retrying:0 scheduled:0", 4)
	for _, id := range []string{"top", "middle"} {
		token, job := f.leaseOne()
		if job["id"] != id {
			t.Errorf("leased %v, want %s", job["id"], id)
		}
		f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)
	}
	if _, ids := f.leaseMany(`{"queues":["q"],"max":5}`); fmt.Sprint(ids) != "[last waits]" {
		t.Errorf("in the end: %v", ids)
	}
}

func TestWorkflowOfABatchHasItsCallbacksAndChildBatches(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	batch := f.call("POST", "/api/v1/batches", `{"success":{"queue":"after"}}`).want(201)["id"]
	below := f.call("POST", "/api/v1/batches", map[string]any{"parent": batch}).want(201)["id"]
	f.push(map[string]any{"queue": "q", "id": "member", "batch": batch})
	f.push(map[string]any{"queue": "q", "id": "lower", "batch": below})
	f.push(map[string]any{"queue": "q", "id": "other"})
	if flow := f.call("GET", fmt.Sprint("/api/v1/workflows/", batch), nil).want(200); flow["total"] != 3.0 {
		t.Errorf("%v", flow)
	}
	if op := f.finishedAct(fmt.Sprintf(`{"action":"cancel","filter":{"workflow":%q}}`, batch)); op["changed"] != 3.0 {
		t.Errorf("cancelled: %v", op)
	}
	f.call("GET", "/api/v1/jobs/other", nil).want(200)
}

func TestWorkflowOmitsQueuesThatTheCallerMayNotRead(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Access: principals(t, map[string][]string{"admin": {"admin"}, "some": {"read:q"}})})
	root := as("admin")
	f.call("POST", "/api/v1/jobs", `{"queue":"q","id":"top"}`, root).want(201)
	f.call("POST", "/api/v1/jobs", `{"queue":"secret","id":"below","parent":"top"}`, root).want(201)
	if flow := f.call("GET", "/api/v1/workflows/top", nil, as("some")).want(200); flow["total"] != 1.0 {
		t.Errorf("%v", flow)
	}
	f.call("GET", "/api/v1/workflows/below", nil, as("some")).problem(404, "job_not_found")
}
