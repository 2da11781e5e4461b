package httpapi

import (
	"fmt"
	"testing"
	"time"
)

func TestABatchRunsItsCallbacks(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	a := f.call("POST", "/api/v1/batches",
		`{"description":"import","success":{"queue":"after","args":["all"]},"complete":{"queue":"seen"}}`)
	b := a.want(201)
	path := a.header.Get("Location")
	if b["state"] != "open" || b["description"] != "import" || path != "/api/v1/batches/"+b["id"].(string) {
		t.Fatalf("opened %v at %s", b, path)
	}
	for range 2 {
		f.push(map[string]any{"queue": "q", "batch": b["id"]})
	}
	f.call("POST", path+"/commit", nil).want(200)
	f.call("POST", "/api/v1/jobs", map[string]any{"queue": "q", "batch": b["id"]}).problem(409, "batch_closed")
	f.call("POST", path+"/reopen", nil).want(200)
	f.push(map[string]any{"queue": "q", "batch": b["id"]})
	for n := range 3 {
		if n == 2 {
			f.call("POST", path+"/commit", nil).want(200)
		}
		token, _ := f.leaseOne()
		f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)
	}
	if n := len(f.call("GET", "/api/v1/jobs?queue=seen", nil).want(200)["jobs"].([]any)); n != 1 {
		t.Errorf("%d callbacks for complete", n)
	}
	l := f.call("POST", "/api/v1/queues/seen/lease", nil).want(200)
	f.call("POST", "/api/v1/leases/"+l["lease"].(string)+"/complete", nil).want(204)
	l = f.call("POST", "/api/v1/queues/after/lease", nil).want(200)
	if args := fmt.Sprint(l["job"].(map[string]any)["args"]); args != "[all]" {
		t.Errorf("arguments of the callback %s", args)
	}
	f.call("POST", "/api/v1/leases/"+l["lease"].(string)+"/complete", nil).want(204)
	done := f.call("GET", path, nil).want(200)
	if done["state"] != "succeeded" || done["total"] != 3.0 || done["done"] != 3.0 {
		t.Errorf("at the end %v", done)
	}
}

func TestOpenBatchIsRemovedWhenItExpires(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	short := f.call("POST", "/api/v1/batches", `{"open_for_s":60}`).header.Get("Location")
	long := f.call("POST", "/api/v1/batches", `{}`).header.Get("Location")
	f.advance(time.Minute)
	f.call("GET", short, nil).problem(404, "batch_not_found")
	f.call("GET", long, nil).want(200)
	f.advance(29 * time.Minute)
	f.call("GET", long, nil).problem(404, "batch_not_found")
}

func TestInvalidBatchErrorNamesTheField(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for body, location := range map[string]string{
		`{"success":{}}`:                                  "body.success.queue",
		`{"complete":{"queue":"q","args":{}}}`:            "body.complete.args",
		`{"complete":{"queue":"q","ephemeral":true}}`:     "body.complete.ephemeral",
		`{"parent":"nonsense"}`:                           "body.parent",
		`{"open_for_s":-1}`:                               "body.open_for_s",
		`{"open_for_s":1e12}`:                             "body.open_for_s",
		`{"descripton":"x"}`:                              "body.descripton",
		`{"success":{"queue":"q","retain_for_s":"long"}}`: "body.success.retain_for_s",
	} {
		p := f.call("POST", "/api/v1/batches", body).problem(422, "invalid_request")
		if got := p["errors"].([]any)[0].(map[string]any)["location"]; got != location {
			t.Errorf("%s: %v, want %s", body, got, location)
		}
	}
	f.call("POST", "/api/v1/batches", `{"parent":"999"}`).problem(404, "batch_not_found")
	f.call("POST", "/api/v1/batches/999/commit", nil).problem(404, "batch_not_found")
	f.call("POST", "/api/v1/batches/nonsense/reopen", nil).problem(404, "batch_not_found")
	if n := len(f.call("GET", "/api/v1/batches", nil).want(200)["batches"].([]any)); n != 0 {
		t.Errorf("%d batches were opened", n)
	}
}
