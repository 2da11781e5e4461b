package httpapi

import (
	"net/http"
	"testing"

	"broker/access"
)

func TestActionWithADelayEndsWithTheRightToIt(t *testing.T) {
	t.Parallel()
	grant := func(queues ...string) []access.Entry {
		return []access.Entry{
			{Name: "root", TokenSHA256: access.HashToken("root"), Grants: []access.Grant{{Role: access.Admin}}},
			{
				Name: "op", TokenSHA256: access.HashToken("op"),
				Grants: []access.Grant{{Role: access.Operate, Queues: queues}},
			},
		}
	}
	as := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	for _, selection := range []string{`"ids":["one"]`, `"filter":{"queue":"q"}`} {
		control := &access.Control{}
		control.Load(grant("q"))
		f := setupAPI(t, Options{Access: control})
		f.call("POST", "/api/v1/jobs", `{"queue":"q","id":"one"}`, as("root")).want(201)
		op := f.call("POST", "/api/v1/job-actions", `{"action":"delete",`+selection+`,"delay_s":1}`, as("op")).want(202)
		control.Load(grant("other"))
		op = f.call("GET", "/api/v1/operations/"+op["id"].(string)+"?wait=10s", nil, as("root")).want(200)
		if op["state"] != "failed" || op["changed"] != 0.0 {
			t.Errorf("%s: %v", selection, op)
		}
		f.call("GET", "/api/v1/jobs/one", nil, as("root")).want(200)
	}
}

func TestLeaseThatWaitsEndsWithTheFirstPrincipals(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	f := setupAPI(t, Options{Access: control})
	got := make(chan answer, 1)
	go func() { got <- f.call("POST", "/api/v1/leases", `{"queues":["q"],"wait_s":20}`) }()
	f.parked()
	control.Load([]access.Entry{{
		Name: "root", TokenSHA256: access.HashToken("root"), Grants: []access.Grant{{Role: access.Admin}},
	}})
	as := func(r *http.Request) { r.Header.Set("Authorization", "Bearer root") }
	f.call("POST", "/api/v1/jobs", `{"queue":"q","id":"one"}`, as).want(201)
	(<-got).problem(403, "forbidden")
	if j := f.call("GET", "/api/v1/jobs/one", nil, as).want(200); j["state"] != "ready" || j["attempts"] != 0.0 {
		t.Errorf("%v", j)
	}
}
