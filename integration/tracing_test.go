package integration_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// span is a span as integration/collector prints it.
type span struct {
	Service, Name, Kind, Trace, Span, Parent, State, Status string
	Flags                                                   uint32
	Attributes                                              map[string]string
}

// collector passes on the spans that it receives, each once: the broker sends those of a request again that is not
// answered within ten seconds. The collector's own library decodes them.
func collector(t *testing.T) (url string, spans <-chan span) {
	t.Helper()
	decoder := harness.Collector(t)
	received := make(chan span, 100)
	var known sync.Map
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cmd := exec.Command(decoder)
		cmd.Stdin = r.Body
		out, err := cmd.Output()
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v", r.URL.Path, r.Header, err)
		}
		for lines := json.NewDecoder(bytes.NewReader(out)); lines.More(); {
			var one span
			if err := lines.Decode(&one); err != nil {
				t.Error(err)
				return
			}
			if _, again := known.LoadOrStore(one.Span, true); !again {
				received <- one
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, received
}

// TestTracesCrossProtocols follows a trace from curl to a Faktory worker, and from a Faktory client to an HTTP worker,
// and reads the spans that the broker sends of both.
func TestTracesCrossProtocols(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	harness.Need(t, "curl")
	url, spans := collector(t)
	b := harness.Start(t, harness.Options{Config: "[tracing]\nendpoint = \"" + url + "\"\n"})
	c := dialFaktory(t, b)

	status, _, pushed := curl(t, b, "-H", "traceparent: "+traceparent, "-H", "tracestate: a=1", "-d",
		`{"queue":"from-http","args":[1]}`, "/jobs")
	equal(t, "status of the submission", status, "201")
	job, err := c.Fetch("from-http")
	check(t, err)
	equal(t, "jid", job.Jid, pushed["id"].(string))
	equal(t, "traceparent of the worker", job.Custom["traceparent"], any(traceparent))
	equal(t, "tracestate of the worker", job.Custom["tracestate"], any("a=1"))
	check(t, c.Ack(job.Jid))
	wantSpans(t, spans, "from-http", job.Jid, "Unset")

	own := faktory.NewJob("Traced", 1)
	own.Queue = "from-faktory"
	own.SetCustom("traceparent", traceparent)
	check(t, c.Push(own))
	l := api(t, b, "POST", "/queues/from-faktory/lease")
	equal(t, "traceparent of the lease", l["job"].(map[string]any)["traceparent"], any(traceparent))
	api(t, b, "POST", "/leases/"+l["lease"].(string)+"/fail", `{"error_class":"Boom"}`)
	wantSpans(t, spans, "from-faktory", own.Jid, "Error")

	harness.Eventually(t, func() string {
		if text := metricsOf(t, b); !strings.Contains(text, "broker_spans_sent_total 6\n") ||
			!strings.Contains(text, "broker_spans_dropped_total 0\n") {
			return "not all spans are counted"
		}
		return ""
	})
}

func metricsOf(t *testing.T, b *harness.Broker) string {
	t.Helper()
	resp, err := http.Get("http://" + b.HTTP + "/metrics")
	check(t, err)
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	check(t, err)
	equal(t, "status of the metrics", resp.StatusCode, http.StatusOK)
	return string(text)
}

// wantSpans receives the three spans of a job that ran once.
func wantSpans(t *testing.T, spans <-chan span, queue, id, status string) {
	t.Helper()
	kinds := map[string]string{"publish": "Producer", "wait": "Internal", "process": "Consumer"}
	for _, operation := range []string{"publish", "wait", "process"} {
		select {
		case s := <-spans:
			equal(t, "service", s.Service, "broker")
			equal(t, "name", s.Name, operation+" "+queue)
			equal(t, "kind", s.Kind, kinds[operation])
			equal(t, "trace", s.Trace, traceparent[3:35])
			equal(t, "parent", s.Parent, traceparent[36:52])
			equal(t, "length of the id", len(s.Span), len(s.Parent))
			equal(t, "flags", s.Flags, 0x301) // sampled, and the parent is known to be of another process
			equal(t, "job", s.Attributes["messaging.message.id"], id)
			equal(t, "destination", s.Attributes["messaging.destination.name"], queue)
			if operation == "process" {
				equal(t, "status", s.Status, status)
			}
		case <-time.After(harness.Patience):
			t.Fatalf("no span %s %s", operation, queue)
		}
	}
}

// TestTracingExampleOfTheDocumentation runs the commands that the documentation gives, with the endpoint in the
// environment and a collector in the place of Jaeger. Jaeger's image listens for OTLP over HTTP on 4318, OTLP's own
// port.
func TestTracingExampleOfTheDocumentation(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	harness.Need(t, "curl")
	page, err := os.ReadFile("../docs/tracing.md")
	check(t, err)
	_, example, _ := strings.Cut(string(page), "--publish 127.0.0.1:4318:4318 jaegertracing/jaeger:")
	_, example, _ = strings.Cut(example, "\n")
	example, _, _ = strings.Cut(example, "```")
	start, clients, ok := strings.Cut(example, " broker serve &\n")
	if !ok || start != "BROKER_TRACING_ENDPOINT=http://127.0.0.1:4318" {
		t.Fatalf("example %q", example)
	}
	url, spans := collector(t)
	b := harness.Start(t, harness.Options{Env: []string{"BROKER_TRACING_ENDPOINT=" + url}})
	clients = strings.NewReplacer("localhost:7420", b.HTTP, "broker healthcheck", harness.Binary(t)+" healthcheck",
		"broker work", harness.Binary(t)+" work").Replace(clients)
	out := harness.Run(t,
		harness.Command{Argv: []string{"sh", "-ec", clients}, Env: []string{"BROKER_URL=http://" + b.HTTP}})
	var submitted struct{ ID string }
	check(t, json.NewDecoder(strings.NewReader(out)).Decode(&submitted))
	wantSpans(t, spans, "mail", submitted.ID, "Unset")
}

// TestNoSpansAreMadeUnlessConfigured: the trace is carried, and there is no exporter, which would show its metrics.
func TestNoSpansAreMadeUnlessConfigured(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{})
	c := dialFaktory(t, b)
	job := faktory.NewJob("Traced", 1)
	job.SetCustom("traceparent", traceparent)
	check(t, c.Push(job))
	fetched, err := c.Fetch("default")
	check(t, err)
	equal(t, "traceparent", fetched.Custom["traceparent"], any(traceparent))
	check(t, c.Ack(fetched.Jid))
	if strings.Contains(metricsOf(t, b), "broker_spans") {
		t.Error("there are metrics of spans")
	}
}
