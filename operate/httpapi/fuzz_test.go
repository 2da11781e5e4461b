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
	"broker/operate/service"
)

// FuzzRequest: no request breaks the API or causes an internal error.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, target, body string }{
		{"GET", "/api/v1/queues?limit=2&sort=-ready&search=q", ""},
		{"GET", "/api/v1/queues/q", ""},
		{"PATCH", "/api/v1/queues/q", `{"paused":true,"max":{"high":1}}`},
		{"POST", "/api/v1/queues/q/clear", `{"states":["ready"]}`},
		{"POST", "/api/v1/queues/q/lease?wait=0.001", `{"worker":"w","lease_for_s":5}`},
		{"POST", "/api/v1/leases", `{"queues":["q","other"],"max":3,"min":2,"wait_s":0.001}`},
		{"POST", "/api/v1/leases/fail", `{"leases":[{"lease":"AAAA","final":true},{"lease":"x","retry_in_s":1}]}`},
		{"DELETE", "/api/v1/queues/q", ""},
		{"GET", "/api/v1/jobs?queue=q&state=ready&limit=1", ""},
		{"GET", "/api/v1/jobs/6ba7b810-9dad-41d1-80b4-000000000001", ""},
		{"DELETE", "/api/v1/jobs/jid-0001", ""},
		{"GET", "/api/v1/jobs/seq:1", ""},
		{"POST", "/api/v1/jobs", `{"queue":"q","args":[1],"delay_s":3,"unique_key":"k","after":["seq:1"]}`},
		{"POST", "/api/v1/jobs?wait=0.001", `{"jobs":[{"queue":"q","body":"x","ephemeral":true}]}`},
		{"POST", "/api/v1/leases/AAAA/complete", `{"result":{"a":1}}`},
		{"GET", "/api/v1/workers?protocol=http", ""},
		{"POST", "/api/v1/drain", `{"reject_new_jobs":true}`},
		{"GET", "/api/v1/summary", ""},
		{"GET", "/api/v1/openapi.json", ""},
		{"GET", "/metrics", ""},
		{"GET", "/healthz", ""},
	} {
		f.Add(seed.method, seed.target, seed.body)
	}
	f.Fuzz(func(t *testing.T, method, target, body string) {
		req, err := http.NewRequest(method, "http://127.0.0.1"+target, strings.NewReader(body))
		if err != nil || !strings.HasPrefix(target, "/") {
			return // no client can send it
		}
		e, err := engine.Open(engine.Options{
			Durability: engine.None, Clock: coretest.NewClock(), Seed: 1, ManualTimers: true,
		})
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
			&core.Submit{Job: &core.Job{
				Queue: "q", Origin: core.Faktory, ID: "jid-0001", Type: "t", Body: []byte("[]"),
			}},
			&core.Submit{Job: &core.Job{Queue: "other", Origin: core.Gearman, Body: []byte("\xff")}},
			&core.Lease{Queues: []string{"q"}},
		}, nil)
		api, err := service.New(service.Options{Broker: e})
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		c := New(Options{Log: zerolog.Nop()})
		c.Ready(Backend{
			Service: api, Broker: e, Parts: toyParts{info: info},
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
