package httpapi

import (
	"fmt"
	"testing"
	"time"
)

func TestAUniqueKeyOutlivesItsJobForAWindow(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	send := map[string]any{
		"queue": "q", "unique_key": "k", "unique_for_s": 60, "unique_until": "window", "on_duplicate": "coalesce",
	}
	first := f.push(send)
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)
	f.call("GET", "/api/v1/jobs/"+first["id"].(string), nil).problem(404, "job_not_found")
	if again := f.push(send); again["id"] != first["id"] || again["state"] != "done" || again["queue"] != "q" {
		t.Errorf("sent again: %v, first %v", again, first)
	}
	f.call("POST", "/api/v1/jobs", `{"queue":"q","unique_key":"k"}`).problem(409, "not_unique")
	f.advance(61 * time.Second)
	if again := f.push(send); again["id"] == first["id"] || again["state"] != "ready" {
		t.Errorf("after the window: %v", again)
	}
	for _, bad := range []string{
		`{"queue":"q","unique_key":"x","unique_until":"window"}`,
		`{"queue":"q","unique_for_s":5,"unique_until":"window"}`,
		`{"queue":"q","unique_key":"x","unique_for_s":5,"unique_until":"never"}`,
	} {
		f.call("POST", "/api/v1/jobs", bad).problem(422, "invalid_request")
	}
}

// A submission that waits for the outcome may join a job that has ended: it gets the job, and the outcome if that is
// kept.
func TestASubmissionWithAWindowThatWaitsJoinsAnEndedJob(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for _, retain := range []float64{0, 60} {
		send := map[string]any{
			"queue": "q", "unique_for_s": 60, "unique_until": "window", "on_duplicate": "coalesce",
			"retain_for_s": retain,
		}
		send["unique_key"] = fmt.Sprint("k", retain)
		first := f.push(send)
		token, _ := f.leaseOne()
		f.call("POST", "/api/v1/leases/"+token+"/complete", map[string]any{"result": "sent"}).want(204)
		again := f.call("POST", "/api/v1/jobs?wait=20s", send).want(201)
		if again["id"] != first["id"] || again["state"] != "done" {
			t.Errorf("sent again: %v, first %v", again, first)
		}
		if o, _ := again["outcome"].(map[string]any); (o["result"] == "sent") != (retain > 0) {
			t.Errorf("outcome %v", o)
		}
		many := f.call("POST", "/api/v1/jobs?wait=20s", map[string]any{"jobs": []any{send, send}}).want(201)
		for _, j := range many["jobs"].([]any) {
			if j.(map[string]any)["id"] != first["id"] {
				t.Errorf("sent again: %v, first %v", j, first)
			}
		}
	}
}
