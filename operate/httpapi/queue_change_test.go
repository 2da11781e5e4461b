package httpapi

import (
	"fmt"
	"sync"
	"testing"
)

// A change of a queue may name single fields, also inside max and throttle. Other fields keep their values.
func TestChangesOfAQueueAreMerged(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	const path = "/api/v1/queues/q"
	for _, step := range []struct{ change, most, throttle string }{
		{`{"max":{"normal":100}}`, "map[high:0 low:0 normal:100]", "<nil>"},
		{
			`{"max":{"low":5},"throttle":{"concurrency":3}}`, "map[high:0 low:5 normal:100]",
			"map[burst:0 concurrency:3 per_worker:0 rate_per_s:0 slot_for_s:0]",
		},
		{
			`{"throttle":{"slot_for_s":1.5}}`, "map[high:0 low:5 normal:100]",
			"map[burst:0 concurrency:3 per_worker:0 rate_per_s:0 slot_for_s:1.5]",
		},
		{`{"max":{"normal":0}}`, "map[high:0 low:5 normal:0]", "map[burst:0 concurrency:3 per_worker:0 rate_per_s:0 slot_for_s:1.5]"},
		{`{"max":{},"throttle":{}}`, "map[high:0 low:5 normal:0]", "map[burst:0 concurrency:3 per_worker:0 rate_per_s:0 slot_for_s:1.5]"},
		{`{"throttle":{"concurrency":0,"slot_for_s":0}}`, "map[high:0 low:5 normal:0]", "<nil>"},
		{`{"throttle":{"rate_per_s":0}}`, "map[high:0 low:5 normal:0]", "<nil>"},
		{`{"max":{"low":0}}`, "<nil>", "<nil>"},
	} {
		q := f.call("PATCH", path, step.change).want(200)
		if most, throttle := fmt.Sprint(q["max"]), fmt.Sprint(q["throttle"]); most != step.most ||
			throttle != step.throttle {
			t.Errorf("after %s: max %s, throttle %s, want %s and %s", step.change, most, throttle, step.most,
				step.throttle)
		}
	}
	for _, bad := range []string{
		`{"max":{"high":-1}}`, `{"max":{"urgent":1}}`, `{"throttle":{"slot_for_s":-1}}`, `{"throttle":{"burst":2}}`,
	} {
		f.call("PATCH", path, bad).problem(422, "invalid_request")
	}
}

func TestChangesOfAQueueAtOnceDoNotUndoEachOther(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	var all sync.WaitGroup
	for _, class := range []string{"high", "normal", "low"} {
		all.Go(func() {
			for n := range 20 {
				f.call("PATCH", "/api/v1/queues/q", fmt.Sprintf(`{"max":{"%s":%d}}`, class, n+1))
			}
		})
	}
	all.Wait()
	if q := f.call("GET", "/api/v1/queues/q", nil).want(200); fmt.Sprint(q["max"]) != "map[high:20 low:20 normal:20]" {
		t.Errorf("max %v", q["max"])
	}
}

func TestInvalidChangeOfAQueueChangesNothing(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	const good = `"max":{"normal":5},"paused":true`
	for _, bad := range []string{
		`"policy":{"max_fails":2},"sharing":{"mode":"ordered"}`, `"policy":{"max_fails":2},"sharing":{"key_tag":"a:b"}`,
		`"policy":{"max_fails":"x"},"sharing":{"mode":"ordered","key_tag":"k"}`,
		`"policy":{"max_fails":2},"throttle":{"burst":2}`,
		`"sharing":{"mode":"fair","key_tag":"k","weights":{"a":0}},"policy":{"lease_for_s":5}`,
	} {
		f.call("PATCH", "/api/v1/queues/q", "{"+bad+","+good+"}").problem(422, "invalid_request")
		if q := f.call("GET", "/api/v1/queues/q", nil).want(200); q["policy"] != nil || q["sharing"] != nil ||
			q["max"] != nil || q["paused"] != false {
			t.Errorf("after %s: %v", bad, q)
		}
	}
}

func TestQueueWithOnlyASharingIsShown(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("PATCH", "/api/v1/queues/q", `{"sharing":{"mode":"ordered","key_tag":"k"}}`).want(200)
	if q := f.call("GET", "/api/v1/queues/q",
		nil).want(200); fmt.Sprint(q["sharing"]) != "map[fair:false key_tag:k mode:ordered]" {
		t.Errorf("sharing %v", q["sharing"])
	}
	f.call("PATCH", "/api/v1/queues/q", `{"sharing":{"mode":"none"}}`).want(200)
	f.call("GET", "/api/v1/queues/q", nil).problem(404, "queue_not_found")
}
