package httpapi

import (
	"fmt"
	"testing"
	"time"
)

func TestASecondSubmissionReplacesTheWaitingJob(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	first := f.push(map[string]any{
		"queue": "q", "unique_key": "k", "on_duplicate": "replace", "body": "old", "tags": []string{"a"},
	})
	again := f.push(map[string]any{
		"queue": "q", "unique_key": "k", "on_duplicate": "replace", "args": []int{2}, "priority": 4,
	})
	j := f.call("GET", "/api/v1/jobs/"+first["id"].(string), nil).want(200)
	if again["id"] != first["id"] || fmt.Sprint(j["args"], j["body"], j["priority"], j["tags"]) != "[2] <nil> 4 <nil>" {
		t.Errorf("got %v, then %v", again, j)
	}
	f.leaseOne()
	f.call("POST", "/api/v1/jobs", `{"queue":"q","unique_key":"k","on_duplicate":"replace","body":"late"}`).problem(409,
		"not_unique")
	if list := f.call("POST", "/api/v1/jobs",
		`{"jobs": [{"queue":"q","unique_key":"a","on_duplicate":"replace","body":"1"}, {"queue":"q","unique_key":"k","on_duplicate":"replace"}]}`); list.status != 409 {
		t.Errorf("a list with a job that a worker has: %d", list.status)
	}
}

func TestDebouncedJobsAreDueAfterTheLastSubmissionAndNoLaterThanTheirBound(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	send := map[string]any{
		"queue": "q", "unique_key": "k", "on_duplicate": "replace", "delay_s": 10, "debounce_max_s": 25,
	}
	start := at(t, f.push(send), "run_at").Add(-10 * time.Second)
	for i, want := range []time.Duration{18, 25, 25} {
		f.advance(8 * time.Second)
		if due := at(t, f.push(send), "run_at").Sub(start); due != want*time.Second {
			t.Errorf("after submission %d it is due at %v, want %v s", i+2, due, int(want))
		}
	}
	f.call("POST", "/api/v1/queues/q/lease", nil).want(204)
	f.advance(time.Second)
	f.leaseOne()
	for _, bad := range []string{
		`{"queue":"q","on_duplicate":"replace"}`, `{"queue":"q","unique_key":"x","delay_s":5,"debounce_max_s":9}`,
		`{"queue":"q","unique_key":"x","on_duplicate":"replace","debounce_max_s":9}`,
		`{"queue":"q","unique_key":"x","on_duplicate":"replace","delay_s":1,"debounce_max_s":-1}`,
		`{"queue":"q","unique_key":"x","on_duplicate":"swap"}`,
	} {
		f.call("POST", "/api/v1/jobs", bad).problem(422, "invalid_request")
	}
	f.call("POST", "/api/v1/jobs?wait=1",
		`{"queue":"q","unique_key":"x","on_duplicate":"replace","ephemeral":true}`).problem(422, "invalid_request")
	f.call("PUT", "/api/v1/schedules/s",
		`{"cron":"* * * * *","job":{"queue":"q","unique_key":"x","on_duplicate":"replace"}}`).problem(422,
		"invalid_request")
}

// at is an instant of a job.
func at(t *testing.T, job map[string]any, member string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, fmt.Sprint(job[member]))
	if err != nil {
		t.Fatalf("%s of %v: %v", member, job, err)
	}
	return when
}

// If a submission finds an existing job, the response names that job, also if a client chose the id.
func TestSubmissionOfAnExistingJobReturnsItsID(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q", "id": "order-7", "type": "Ship", "tags": []string{"a"}, "unique_key": "k"})
	for _, choice := range []string{"coalesce", "replace"} {
		a := f.call("POST", "/api/v1/jobs", map[string]any{
			"queue": "q", "type": "Ship", "tags": []string{"a"}, "unique_key": "k", "on_duplicate": choice,
		})
		job := a.want(201)
		if job["id"] != "order-7" || job["type"] != "Ship" || fmt.Sprint(job["tags"]) != "[a]" ||
			a.header.Get("Location") != "/api/v1/jobs/order-7" {
			t.Errorf("%s: %v, %s", choice, job, a.header.Get("Location"))
		}
	}
}
