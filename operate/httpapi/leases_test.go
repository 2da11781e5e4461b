package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"broker/core"
)

func TestAWorkerCompletesItsJobOnce(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q", "body": "x", "retain_for_s": 60})
	token, leased := f.leaseOne()
	if leased["id"] != job["id"] || leased["state"] != "leased" || leased["attempts"] != 1.0 {
		t.Errorf("leased %v", leased)
	}
	f.call("POST", "/api/v1/leases/"+token+"/progress", `{"numerator":1,"denominator":2,"text":"half"}`).want(200)
	shown := f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)
	if p := shown["progress"].(map[string]any); p["numerator"] != 1.0 || p["denominator"] != 2.0 ||
		p["text"] != "half" {
		t.Errorf("progress %v", p)
	}
	f.call("POST", "/api/v1/leases/"+token+"/complete", `{"result":"all well"}`).want(204)
	shown = f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)
	if o := shown["outcome"].(map[string]any); o["success"] != true || o["result"] != "all well" {
		t.Errorf("outcome %v", o)
	}
	for _, verb := range []string{"complete", "fail", "progress", "heartbeat", "release"} {
		f.call("POST", "/api/v1/leases/"+token+"/"+verb, nil).problem(410, "lease_lost")
	}
}

func TestResultsAreTextOrJSON(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for body, want := range map[string]any{
		`{"result":"text"}`: "text", `{"result":{"a":[1]}}`: `{"a":[1]}`, `{"result":7}`: "7", `{"result":null}`: "",
		`{}`: "", ``: "",
		`{"result_base64":"aGk="}`: "hi",
	} {
		job := f.push(map[string]any{"queue": "q", "retain_for_s": 60})
		token, _ := f.leaseOne()
		f.call("POST", "/api/v1/leases/"+token+"/complete", body).want(204)
		o := f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)["outcome"].(map[string]any)
		if o["result"] != want {
			t.Errorf("%s: %v", body, o)
		}
	}
	job := f.push(map[string]any{"queue": "q", "retain_for_s": 60})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/complete", `{"result":"x","result_base64":"AP8="}`).problem(422,
		"invalid_request")
	f.call("POST", "/api/v1/leases/"+token+"/complete", `{"result_base64":"AP8="}`).want(204)
	o := f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)["outcome"].(map[string]any)
	if o["result_base64"] != "AP8=" || o["result"] != nil {
		t.Errorf("bytes: %v", o)
	}
}

func TestALeaseThatRanOutIsLost(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q", "lease_for_s": 10})
	first, _ := f.leaseOne()
	f.advance(9 * time.Second)
	f.call("POST", "/api/v1/leases/"+first+"/heartbeat", nil).want(200)
	f.advance(9 * time.Second)
	f.call("POST", "/api/v1/leases/"+first+"/heartbeat", `{"extend_s":20}`).want(200)
	f.advance(19 * time.Second)
	f.call("POST", "/api/v1/leases/"+first+"/progress", nil).want(200)
	f.advance(10 * time.Second)
	f.call("POST", "/api/v1/leases/"+first+"/complete", nil).problem(410, "lease_lost")
	f.advance(time.Minute) // the retry's back-off
	second, leased := f.leaseOne()
	if leased["attempts"] != 2.0 {
		t.Errorf("second lease %v", leased)
	}
	f.call("POST", "/api/v1/leases/"+first+"/complete", nil).problem(410, "lease_lost")
	f.call("POST", "/api/v1/leases/"+second+"/complete", nil).want(204)
}

func TestTokensCannotBeGuessed(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	f.push(map[string]any{"queue": "q"})
	one, _ := f.leaseOne()
	two, _ := f.leaseOne()
	for _, token := range []string{"x", one[:20] + two[20:], one[:len(one)-1], one + "A", strings.ToLower(one)} {
		f.call("POST", "/api/v1/leases/"+token+"/complete", nil).problem(404, "invalid_lease")
	}
}

func TestFailuresRetryAndBury(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.push(map[string]any{"queue": "q", "max_fails": 2})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/fail",
		`{"error_class":"E","message":"m","backtrace":["a","b"],"retry_in_s":5}`).want(204)
	shown := f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).want(200)
	failure := shown["failure"].(map[string]any)
	if shown["state"] != "retrying" || failure["type"] != "E" || failure["message"] != "m" ||
		fmt.Sprint(failure["backtrace"]) != "[a b]" || shown["run_at"] == nil {
		t.Errorf("after one failure: %v", shown)
	}
	f.call("POST", "/api/v1/queues/q/lease", nil).want(204)
	f.advance(5 * time.Second)
	token, _ = f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/fail", nil).want(204)
	if got := f.state(job["id"]); got != "dead" {
		t.Errorf("after two failures: %v", got)
	}
}

func TestReleasedJobIsReadyAgain(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/release", nil).want(204)
	if _, job := f.leaseOne(); job["attempts"] != 1.0 {
		t.Errorf("a lease given back counts: %v", job)
	}
}

func TestLeaseWaitsForAJob(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	got := make(chan answer, 1)
	go func() { got <- f.call("POST", "/api/v1/queues/q/lease?wait=1m", "{}") }()
	f.parked()
	job := f.push(map[string]any{"queue": "q"})
	a := <-got
	if l := a.want(200); l["job"].(map[string]any)["id"] != job["id"] {
		t.Errorf("leased %v", l)
	}
	go func() { got <- f.call("POST", "/api/v1/queues/q/lease?wait=60", nil) }()
	f.parked()
	f.advance(time.Minute)
	a = <-got
	a.want(204)
}

// parked waits until an HTTP client waits for a job.
func (f *apiFixture) parked() {
	f.t.Helper()
	for f.clients() == 0 {
		select {
		case <-f.t.Context().Done():
			f.t.Fatal("no client is waiting")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestALeaseOfAClientThatLeavesStaysReady(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for range 20 {
		req, err := http.NewRequestWithContext(f.t.Context(), "POST", f.url+"/api/v1/queues/q/lease?wait=1m", nil)
		if err != nil {
			t.Fatal(err)
		}
		conn := &http.Transport{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if resp, err := conn.RoundTrip(req); err == nil {
				_ = resp.Body.Close() // not read
			}
		}()
		f.parked()
		conn.CancelRequest(req) //nolint:staticcheck // the simplest way to disconnect
		<-done
		for f.clients() > 0 {
			time.Sleep(time.Millisecond) //nolint:forbidigo // the server's goroutine has no signal
		}
	}
	f.push(map[string]any{"queue": "q"})
	if _, job := f.leaseOne(); job["attempts"] != 1.0 {
		t.Errorf("somebody who had left got the job: %v", job)
	}
}

func (f *apiFixture) clients() int {
	for _, r := range f.engine.Do(f.client, []core.Op{&core.ReadStats{}}, nil) {
		if r.Stats != nil {
			return r.Stats.Clients[core.HTTP]
		}
	}
	return 0
}

func TestSubmissionWaitsForTheOutcome(t *testing.T) {
	t.Parallel()
	for _, ephemeral := range []bool{false, true} {
		f := setupAPI(t, Options{})
		got := make(chan answer, 1)
		go func() {
			got <- f.call("POST", "/api/v1/jobs?wait=60s",
				map[string]any{"queue": "q", "body": "in", "ephemeral": ephemeral})
		}()
		l := f.call("POST", "/api/v1/queues/q/lease?wait=10s", nil).want(200)
		f.call("POST", "/api/v1/leases/"+l["lease"].(string)+"/complete", `{"result":"out"}`).want(204)
		a := <-got
		job := a.want(201)
		if o := job["outcome"].(map[string]any); o["success"] != true || o["result"] != "out" ||
			job["state"] != "done" {
			t.Errorf("ephemeral %v: %v", ephemeral, job)
		}
	}
}

func TestWithoutAnOutcomeInTimeTheJobIsShown(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	got := make(chan answer, 1)
	go func() { got <- f.call("POST", "/api/v1/jobs?wait=10s", `{"queue":"q"}`) }()
	f.parked()
	for f.call("GET", "/api/v1/jobs", nil).want(200)["jobs"].([]any) == nil {
	}
	f.advance(10 * time.Second)
	a := <-got
	if job := a.want(201); job["state"] != "ready" || job["outcome"] != nil {
		t.Errorf("%v", job)
	}
}

func TestAnEphemeralJobWithoutAnOutcomeInTimeIsShownAsWithdrawn(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	job := f.call("POST", "/api/v1/jobs?wait=200ms", `{"queue":"q","ephemeral":true}`).want(201)
	outcome, _ := job["outcome"].(map[string]any)
	if job["state"] != "done" || outcome["success"] != false || outcome["cause"] != "cancelled" {
		t.Errorf("%v, want an outcome that says cancelled", job)
	}
	f.call("GET", "/api/v1/jobs/"+job["id"].(string), nil).problem(404, "job_not_found")
}

func TestALeasedEphemeralJobOutlivesTheWait(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	got := make(chan answer, 1)
	go func() { got <- f.call("POST", "/api/v1/jobs?wait=10s", `{"queue":"q","ephemeral":true}`) }()
	f.call("POST", "/api/v1/queues/q/lease?wait=10s", nil).want(200)
	if job := (<-got).want(201); job["state"] != "leased" || job["outcome"] != nil || job["watchers"] != nil {
		t.Errorf("%v, want a job in the hands of its worker, without anybody who waits", job)
	}
}

func TestBadWaits(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for _, wait := range []string{"x", "-1", "-1s", "11m", "1e9", "NaN", "601"} {
		f.call("POST", "/api/v1/queues/q/lease?wait="+wait, nil).problem(422, "invalid_request")
	}
}
