package httpapi

import (
	"fmt"
	"testing"
)

func TestOneLimitForSeveralQueuesAndTypes(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	l := f.call("PUT", "/api/v1/limits", `{"name":"api","queues":["a","q"],"types":["T"],"concurrency":3}`).want(
		200,
	)["limits"].([]any)[0].(map[string]any)
	if l["scope"] != "shared" || l["name"] != "api" || fmt.Sprint(l["queues"], l["types"]) != "[a q] [T]" ||
		l["concurrency"] != 3.0 || l["queue"] != nil {
		t.Errorf("%v", l)
	}
	f.push(map[string]any{"queue": "q", "cost": 2})
	f.push(map[string]any{"queue": "q", "cost": 2})
	f.push(map[string]any{"queue": "other", "type": "T"})
	f.push(map[string]any{"queue": "other", "type": "T"})
	token, job := f.leaseOne()
	if job["cost"] != 2.0 {
		t.Errorf("%v", job)
	}
	f.call("POST", "/api/v1/queues/q/lease", "{}").want(204)
	f.call("POST", "/api/v1/queues/other/lease", "{}").want(200)
	f.call("POST", "/api/v1/queues/other/lease", "{}").want(204)
	use := f.call("GET", "/api/v1/limits?name=api",
		nil).want(200)["limits"].([]any)[0].(map[string]any)["uses"].([]any)[0].(map[string]any)
	if use["taken"] != 3.0 || use["ready"] != 2.0 || len(use["slots"].([]any)) != 2 {
		t.Errorf("%v", use)
	}
	for path, n := range map[string]int{
		"/limits": 1, "/limits?queue=a": 1, "/limits?queue=other": 0, "/limits?name=none": 0,
	} {
		if all := f.call("GET", "/api/v1"+path, nil).want(200)["limits"].([]any); len(all) != n {
			t.Errorf("%s: %v", path, all)
		}
	}
	f.call("POST", "/api/v1/leases/"+token+"/complete", "{}").want(204)
	f.call("POST", "/api/v1/queues/q/lease", "{}").want(200)
	f.call("DELETE", "/api/v1/limits?name=api", nil).want(204)
	f.call("DELETE", "/api/v1/limits?name=api&scope=shared", nil).problem(404, "limit_not_found")
	f.call("POST", "/api/v1/queues/other/lease", "{}").want(200)
}

func TestWrongSharedLimitsAreRefused(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for _, body := range []string{
		`{"queues":["a"],"concurrency":1}`, `{"name":"api","queues":["a"]}`,
		`{"name":"api","queues":[""],"concurrency":1}`, `{"name":"api","concurrency":1}`,
		`{"name":"api","queue":"a","queues":["b"],"concurrency":1}`,
		`{"name":"api","queues":["b"],"concurrency":1,"per_worker":1}`,
		`{"name":"api","queues":["b"],"scope":"type","concurrency":1}`,
		`{"name":"api","scope":"shared","concurrency":1}`, `{"name":"api","queues":["b"],"burst":1}`,
	} {
		f.call("PUT", "/api/v1/limits", body).problem(422, "invalid_request")
	}
	f.call("DELETE", "/api/v1/limits", nil).problem(422, "invalid_request")
	f.call("POST", "/api/v1/jobs", `{"queue":"q","cost":1000001}`).problem(422, "invalid_request")
}
