package httpapi

import (
	"fmt"
	"testing"
)

// stopAll asks the workers of all jobs to stop, and returns the operation.
func (f *apiFixture) stopAll() map[string]any {
	f.t.Helper()
	return f.call("POST", "/api/v1/job-actions?wait=5s", `{"action":"cancel","running":"signal","filter":{}}`).want(202)
}

func TestHeartbeatReportsARequestedCancel(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q", "max_fails": 9, "retain_for_s": 60})
	waiting := f.push(map[string]any{"queue": "other"})
	token, _ := f.leaseOne()
	for _, verb := range []string{"heartbeat", "progress"} {
		if a := f.call("POST", "/api/v1/leases/"+token+"/"+verb, nil).want(200); a["cancel_requested"] != false ||
			a["lease_until"] == nil {
			t.Errorf("%s before: %v", verb, a)
		}
	}
	if op := f.stopAll(); op["state"] != "done" || op["changed"] != 2.0 {
		t.Errorf("operation %v", op)
	}
	if got := f.state(job["id"]); got != "leased" {
		t.Errorf("the job that runs is %v", got)
	}
	f.call("GET", "/api/v1/jobs/"+waiting["id"].(string), nil).problem(404, "job_not_found")
	for _, verb := range []string{"heartbeat", "progress"} {
		if a := f.call("POST", "/api/v1/leases/"+token+"/"+verb, nil).want(200); a["cancel_requested"] != true ||
			a["lease_until"] == nil {
			t.Errorf("%s after: %v", verb, a)
		}
	}
	_, many := f.finishMany("heartbeat", leasesOf(token)...)
	if many[0]["cancel_requested"] != true {
		t.Errorf("heartbeat of many: %v", many)
	}
	if got := f.seqs("cancel_requested=true", 10); got != fmt.Sprintf("[%v]", job["seq"]) {
		t.Errorf("jobs that are to stop: %s", got)
	}
	f.call("POST", "/api/v1/leases/"+token+"/fail", `{"message":"stopped"}`).want(204)
	shown := f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)
	if o := shown["outcome"].(map[string]any); shown["state"] != "done" || o["success"] != false ||
		o["cause"] != "cancelled" {
		t.Errorf("in the end: %v", shown)
	}
	last := f.call("GET", "/api/v1/finished-jobs", nil).want(200)["jobs"].([]any)[0].(map[string]any)
	if last["kind"] != "cancelled" || last["seq"] != job["seq"] {
		t.Errorf("finished: %v", last)
	}
}

func TestJobWithARequestedCancelCanBeCompleted(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q", "retain_for_s": 60})
	token, _ := f.leaseOne()
	f.stopAll()
	f.call("POST", "/api/v1/leases/"+token+"/complete", `{"result":"done"}`).want(204)
	if o := f.call("GET", "/api/v1/jobs/"+job["id"].(string),
		nil).want(200)["outcome"].(map[string]any); o["success"] != true {
		t.Errorf("outcome %v", o)
	}
}

func TestCancelWithoutSignalRemovesLeasedJobs(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/job-actions?wait=5s", `{"action":"cancel","filter":{}}`).want(202)
	f.call("POST", "/api/v1/leases/"+token+"/heartbeat", nil).problem(410, "lease_lost")
	f.call("POST", "/api/v1/job-actions", `{"action":"kill","running":"signal","filter":{}}`).problem(422,
		"invalid_request")
	f.call("POST", "/api/v1/job-actions", `{"action":"cancel","running":"yes","filter":{}}`).problem(422,
		"invalid_request")
}
