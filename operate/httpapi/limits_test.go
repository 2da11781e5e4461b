package httpapi

import (
	"fmt"
	"testing"
)

func TestLimitsAreSetUsedAndRemoved(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for range 3 {
		f.push(map[string]any{"queue": "q", "type": "letter"})
	}
	f.call("PUT", "/api/v1/limits", `{"queue": "q", "scope": "type", "name": "letter", "concurrency": 1}`).want(200)
	_, job := f.leaseOne()
	f.call("POST", "/api/v1/queues/q/lease", nil).want(204)
	limits := f.call("GET", "/api/v1/limits?queue=q", nil).want(200)["limits"].([]any)
	if len(limits) != 1 {
		t.Fatalf("limits %v", limits)
	}
	l := limits[0].(map[string]any)
	use := l["uses"].([]any)[0].(map[string]any)
	slots := use["slots"].([]any)
	if l["scope"] != "type" || l["concurrency"] != 1.0 || use["taken"] != 1.0 || len(slots) != 1 {
		t.Fatalf("limit %v", l)
	}
	if held := f.call("GET", "/api/v1/jobs/"+slots[0].(map[string]any)["job"].(string), nil).want(200); held["id"] != job["id"] {
		t.Errorf("the slot is held by %v", held["id"])
	}
	if all := f.call("GET", "/api/v1/limits", nil).want(200)["limits"].([]any); len(all) != 1 {
		t.Errorf("all limits: %v", all)
	}
	f.call("DELETE", "/api/v1/limits?queue=q&scope=type&name=letter", nil).want(204)
	f.call("DELETE", "/api/v1/limits?queue=q&scope=type&name=letter", nil).problem(404, "limit_not_found")
	f.leaseOne()
	f.call("PUT", "/api/v1/limits", `{"queue": "q", "scope": "planet"}`).problem(422, "invalid_request")
	f.call("PUT", "/api/v1/limits", `{"scope": "queue"}`).problem(422, "invalid_request")
}

func TestAQueueIsThrottledAndShared(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for range 3 {
		f.push(map[string]any{"queue": "q"})
	}
	q := f.call("PATCH", "/api/v1/queues/q", `{"throttle": {"concurrency": 1, "per_worker": 0, "slot_for_s": 0}, "sharing": {"key_tag": "shop", "fair": true, "weights": {"acme": 3}}}`).want(200)
	if got := fmt.Sprint(q["sharing"]); got != "map[fair:true key_tag:shop weights:map[acme:3]]" {
		t.Errorf("sharing %s", got)
	}
	if q["throttle"].(map[string]any)["concurrency"] != 1.0 {
		t.Errorf("queue %v", q)
	}
	f.leaseOne()
	f.call("POST", "/api/v1/queues/q/lease", nil).want(204)
	f.call("PATCH", "/api/v1/queues/q", `{"throttle": {"concurrency": 0, "per_worker": 0, "slot_for_s": 0}, "sharing": {"fair": false}}`).want(200)
	f.leaseOne()
	f.call("PATCH", "/api/v1/queues/q", `{"sharing": {"key_tag": "a", "key_unique": true, "fair": true}}`).problem(422, "invalid_request")
}
