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
	if held := f.call("GET", "/api/v1/jobs/"+slots[0].(map[string]any)["job"].(string),
		nil).want(200); held["id"] != job["id"] {
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
	q := f.call("PATCH", "/api/v1/queues/q",
		`{"throttle": {"concurrency": 1, "per_worker": 0, "slot_for_s": 0}, "sharing": {"key_tag": "shop", "fair": true, "weights": {"acme": 3}}}`).want(
		200,
	)
	if got := fmt.Sprint(q["sharing"]); got != "map[fair:true key_tag:shop mode:fair weights:map[acme:3]]" {
		t.Errorf("sharing %s", got)
	}
	if q["throttle"].(map[string]any)["concurrency"] != 1.0 {
		t.Errorf("queue %v", q)
	}
	f.leaseOne()
	f.call("POST", "/api/v1/queues/q/lease", nil).want(204)
	f.call("PATCH", "/api/v1/queues/q",
		`{"throttle": {"concurrency": 0, "per_worker": 0, "slot_for_s": 0}, "sharing": {"fair": false}}`).want(200)
	f.leaseOne()
	f.call("PATCH", "/api/v1/queues/q", `{"sharing": {"key_tag": "a", "key_unique": true, "fair": true}}`).problem(422,
		"invalid_request")
}

func TestJobsOfAKeyGoInOrderInAnOrderedQueue(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	q := f.call("PATCH", "/api/v1/queues/orders", `{"sharing": {"mode": "ordered", "key_tag": "customer"}}`).want(200)
	if got := fmt.Sprint(q["sharing"]); got != "map[fair:false key_tag:customer mode:ordered]" {
		t.Errorf("sharing %s", got)
	}
	ids := map[string]string{}
	for _, name := range []string{"7-first", "7-second", "8-first"} {
		ids[name] = f.push(map[string]any{
			"queue": "orders", "args": []string{name}, "tags": []string{"customer:" + name[:1]},
		})["id"].(string)
	}
	lease := func(most int) (got []string) {
		for _, l := range f.call("POST", "/api/v1/leases",
			fmt.Sprintf(`{"queues": ["orders"], "max": %d}`, most)).want(200)["leases"].([]any) {
			got = append(got, fmt.Sprint(l.(map[string]any)["job"].(map[string]any)["args"]))
		}
		return got
	}
	if got := fmt.Sprint(lease(1), lease(1), lease(1)); got != "[[7-first]] [[8-first]] []" {
		t.Errorf("leased %s", got)
	}
	j := f.call("GET", "/api/v1/jobs/"+ids["7-second"], nil).want(200)
	if got := fmt.Sprintf("%v %v %v %v", j["state"], j["reason"], j["behind"], j["key"]); got != "ready order 1 7" {
		t.Errorf("the second job says %s", got)
	}
	f.call("DELETE", "/api/v1/jobs/"+ids["7-first"], nil).want(204)
	if got := fmt.Sprint(lease(10)); got != "[[7-second]]" {
		t.Errorf("leased %s", got)
	}
	f.call("PATCH", "/api/v1/queues/orders", `{"sharing": {"mode": "none"}}`).want(200)
	for _, wrong := range []string{
		`{"mode": "ordered"}`, `{"mode": "ordered", "key_unique": true}`,
		`{"mode": "ordered", "key_tag": "a", "fair": true}`,
		`{"mode": "strict", "key_tag": "a"}`, `{"mode": "ordered", "key_tag": "a", "weights": {"b": 2}}`,
	} {
		f.call("PATCH", "/api/v1/queues/orders", `{"sharing": `+wrong+`}`).problem(422, "invalid_request")
	}
}
