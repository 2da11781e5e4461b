package httpapi

import (
	"testing"
	"time"

	"broker/core"
	"broker/core/engine"
	"broker/operate/service"
)

func TestPushTargetIsAWorkerWithItsCounts(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 0, 1, 0, 0, time.UTC)
	target := service.PushTarget{
		Name: "shop", URL: "https://shop.example.com/jobs", Queues: []string{"mail", "x\xff"}, Worker: "push:shop",
		Concurrency: 4, InFlight: 1,
		Done: 7, Failed: 2, Deferred: 3, Unreachable: 4, Late: 5, Seconds: 1.5,
	}
	paused := service.PushTarget{
		Name: "z", Worker: "push:z", PausedUntil: &at, LastError: "connection refused", LastErrorAt: &at,
		Concurrency: 1,
	}
	parts := toyParts{pushes: []service.PushTarget{target, paused}}
	f := setupService(t, Options{}, engine.Options{}, func(o *service.Options) { o.Host = parts })
	backend := *f.server.backend.Load()
	backend.Parts = parts
	f.server.Ready(backend)
	f.call("POST", "/api/v1/jobs", `{"queue": "mail", "args": [1]}`).want(201)
	core.DoOnce(f.engine, core.HTTP,
		&core.Lease{Queues: []string{"mail"}, Holder: core.HeldByWorker, Worker: "push:shop", LeaseFor: time.Minute})

	workers := f.call("GET", "/api/v1/workers?protocol=http", nil).want(200)["workers"].([]any)
	if len(workers) != 2 {
		t.Fatalf("workers %v", workers)
	}
	w := workers[0].(map[string]any)
	p := w["push"].(map[string]any)
	held := w["held"].([]any)
	if w["id"] != "push:shop" || w["name"] != "push:shop" || w["address"] != target.URL || w["waiting"] != true ||
		len(held) != 1 ||
		len(w["queues"].([]any)) != 2 || p["done"] != 7.0 || p["failed"] != 2.0 || p["deferred"] != 3.0 ||
		p["unreachable"] != 4.0 ||
		p["late"] != 5.0 || p["in_flight"] != 1.0 || p["concurrency"] != 4.0 || p["paused_until"] != nil {
		t.Errorf("worker %v", w)
	}
	z := workers[1].(map[string]any)
	if p := z["push"].(map[string]any); z["waiting"] != false || p["paused_until"] != "2030-01-01T00:01:00Z" ||
		p["last_error"] != "connection refused" {
		t.Errorf("worker %v", z)
	}
	f.call("POST", "/api/v1/workers/push:shop/quiet", nil).problem(501, "not_available")
	f.call("DELETE", "/api/v1/workers/push:shop", nil).problem(404, "worker_not_found")

	m := &fixture{t: t}
	m.lines(string(f.call("GET", "/metrics", nil).text),
		`broker_push_requests_total{outcome="done",target="shop"} 7`,
		`broker_push_requests_total{outcome="failed",target="shop"} 2`,
		`broker_push_requests_total{outcome="deferred",target="shop"} 3`,
		`broker_push_requests_total{outcome="unreachable",target="shop"} 4`,
		`broker_push_requests_total{outcome="late",target="shop"} 5`, `broker_push_seconds_total{target="shop"} 1.5`,
		`broker_push_in_flight{target="shop"} 1`, `broker_push_paused{target="shop"} 0`,
		`broker_push_paused{target="z"} 1`)
}
