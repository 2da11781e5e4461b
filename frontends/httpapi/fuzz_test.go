package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
)

// FuzzRequest: no request to the API breaks anything or is answered with a fault of ours.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, target, body string }{
		{"GET", "/api/queues?limit=2&offset=0", ""},
		{"GET", "/api/queues/q", ""},
		{"POST", "/api/queues/q/pause", ""},
		{"POST", "/api/queues/q/remove", ""},
		{"GET", "/api/jobs?queue=q&state=ready&limit=1&cursor=1&type=t", ""},
		{"GET", "/api/jobs/1", ""},
		{"GET", "/api/jobs/6ba7b810-9dad-41d1-80b4-000000000001", ""},
		{"POST", "/api/jobs/2/cancel", ""},
		{"POST", "/api/jobs/jid-0001/kill", ""},
		{"POST", "/api/jobs/1/requeue", ""},
		{"GET", "/api/workers", ""},
		{"POST", "/api/workers/w1/quiet", ""},
		{"GET", "/api/history?days=3", ""},
		{"GET", "/api/cron", ""},
		{"POST", "/api/drain", `{"refuse_jobs":true}`},
		{"POST", "/api/resume", ""},
		{"POST", "/api/backup", `{"dir":"/nowhere"}`},
		{"GET", "/metrics", ""},
		{"GET", "/healthz", ""},
	} {
		f.Add(seed.method, seed.target, seed.body)
	}
	f.Fuzz(func(t *testing.T, method, target, body string) {
		req, err := http.NewRequest(method, "http://127.0.0.1"+target, strings.NewReader(body)) //nolint:noctx // no network
		if err != nil || !strings.HasPrefix(target, "/") {
			return // no client can send it
		}
		e, err := engine.Open(engine.Options{Durability: engine.None, Clock: coretest.NewClock(), Seed: 1, ManualTimers: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Shutdown(); err != nil {
				t.Error(err)
			}
		}()
		client := e.Open(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}})
		e.Do(client, []core.Op{
			&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Workq, ID: "6ba7b810-9dad-41d1-80b4-000000000001"}},
			&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Faktory, ID: "jid-0001", Type: "t", Body: []byte("[]")}},
			&core.Submit{Job: &core.Job{Queue: "other", Origin: core.Gearman, Body: []byte("\xff")}},
			&core.Lease{Queues: []string{"q"}},
		}, nil)
		c := New(Options{Log: zerolog.Nop()})
		c.Ready(Backend{
			Broker: e, Stats: func() []byte { return []byte(info) }, Connections: func() map[string]Connections { return nil },
			Syncs: func() core.Latency { return core.Latency{} }, Workers: func() []Worker { return []Worker{{WID: "w1"}} },
			SetWorkerState: func(string, string) error { return nil }, Cron: func() []CronEntry { return nil },
			Backup: func(string) error { return &Refusal{http.StatusConflict, engine.ErrNothingStored} },
		})
		answer := httptest.NewRecorder()
		c.HTTP().Handler.ServeHTTP(answer, req)
		if answer.Code == http.StatusInternalServerError {
			t.Errorf("%s %s: %s", method, target, answer.Body)
		}
		if err := e.Check(); err != nil {
			t.Errorf("%s %s: %v", method, target, err)
		}
	})
}
