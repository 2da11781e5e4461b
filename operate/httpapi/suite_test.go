package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
	"broker/operate/service"
)

// HTTP passes the test suite of the front-ends.
func TestHTTPBehavesAsAFrontend(t *testing.T) {
	t.Parallel()
	frontendtest.Run(t, frontendtest.WithinBubble(true, suiteDialect))
}

func suiteDialect(t *testing.T) frontendtest.Dialect {
	t.Helper()
	return frontendtest.Dialect{
		New: func(b core.Broker) frontends.Frontend { return newSuiteFront(t, b) },
		SubmitRequest: func(n int, queue, body string) []byte {
			job, err := json.Marshal(map[string]any{
				"id": fmt.Sprintf("job-%d", n), "queue": queue, "body": body, "lease_for_s": 60, "backoff": "none",
			})
			if err != nil {
				t.Fatal(err)
			}
			return frontendtest.HTTPRequest("POST", "/api/v1/jobs", string(job))
		},
		SubmitReply: func(c *frontendtest.Client, n int) {
			t.Helper()
			if status, job := suiteResponse(t, c); status != http.StatusCreated ||
				job["id"] != fmt.Sprintf("job-%d", n) {
				t.Fatalf("submission %d: %d %v", n, status, job)
			}
		},
		Lease: func(c *frontendtest.Client, queue string) (frontendtest.Leased, bool) {
			t.Helper()
			c.SendBytes(frontendtest.HTTPRequest("POST", "/api/v1/queues/"+queue+"/lease", "{}"))
			status, lease := suiteResponse(t, c)
			if status == http.StatusNoContent {
				return frontendtest.Leased{}, false
			}
			job, _ := lease["job"].(map[string]any)
			token, _ := lease["lease"].(string)
			body, _ := job["body"].(string)
			return frontendtest.Leased{ID: token, Queue: queue, Body: body}, status == http.StatusOK
		},
		Complete: func(c *frontendtest.Client, job frontendtest.Leased) {
			t.Helper()
			c.SendBytes(frontendtest.HTTPRequest("POST", "/api/v1/leases/"+job.ID+"/complete", `{"result":"done"}`))
			if status, p := suiteResponse(t, c); status != http.StatusNoContent {
				t.Fatalf("complete: %d %v", status, p)
			}
		},
		LeaseFor: time.Minute,
		Ping:     frontendtest.HTTPRequest("GET", "/nothing", ""),
		Pong: func(c *frontendtest.Client) {
			t.Helper()
			if status, p := suiteResponse(t, c); status != http.StatusNotFound || p["code"] != codeRouteNotFound {
				t.Fatalf("ping: %d %v", status, p)
			}
		},
		Commands: suiteRoutes(t), Exchanges: suiteExchanges(),
		Garbage: [][]byte{
			[]byte("\x00REQ\x00\x00\x00\x01"), []byte("GET\r\n\r\n"), []byte("GET / HTTP/9.9\r\n\r\n"),
			frontendtest.HTTPRequest("POST", "/api/v1/jobs", "{"),
			[]byte("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"),
			[]byte("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
		},
		Oversize: []byte("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"),
	}
}

// suiteResponse reads a response.
func suiteResponse(t *testing.T, c *frontendtest.Client) (status int, object map[string]any) {
	t.Helper()
	status, body := c.HTTPResponse()
	if len(body) > 0 {
		if err := json.Unmarshal(body, &object); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	return status, object
}

// newSuiteFront is the HTTP server as a front-end.
func newSuiteFront(t *testing.T, b core.Broker) frontends.Frontend {
	t.Helper()
	s, err := service.New(service.Options{Broker: b})
	if err != nil {
		t.Fatal(err)
	}
	api := New(Options{Now: b.Now})
	api.Ready(Backend{Broker: b, Service: s, Parts: toyParts{}})
	refused := frontendtest.HTTPRequest("POST", "/api/v1/jobs", `{"queue":"refused"}`)
	return frontendtest.NewHTTP(t, api.HTTP(), refused, s.Close)
}
