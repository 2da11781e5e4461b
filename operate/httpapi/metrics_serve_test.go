package httpapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Prometheus prefers protobuf if it collects native histograms.
func TestMetricsHaveTheRequestedFormat(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{})
	const text, protobuf = "text/plain; version=0.0.4", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily"
	for _, test := range []struct{ accept, kind, content string }{
		{"", text, "\nbroker_ready 0\n"},
		{"text/plain", text, "\nbroker_ready 0\n"},
		{"application/openmetrics-text;version=1.0.0", text, "\nbroker_ready 0\n"},
		{
			"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,text/plain;version=0.0.4;q=0.2",
			protobuf, "\x0cbroker_ready\x12",
		},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", test.accept)
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		unzipped, err := gzip.NewReader(resp.Body)
		if err != nil {
			t.Fatalf("%s: %v", test.accept, err)
		}
		body, err := io.ReadAll(unzipped)
		if err != nil || !bytes.Contains(body, []byte(test.content)) {
			t.Errorf("%s: %v, %.100q", test.accept, err, body)
		}
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK ||
			!strings.HasPrefix(got, test.kind) {
			t.Errorf("%s: %s, %q; want %q", test.accept, resp.Status, got, test.kind)
		}
	}
}

func TestMetricsByName(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{})
	status, body := f.get("/metrics?name[]=go_goroutines&name[]=go_threads", "")
	if status != http.StatusOK || strings.Count(body, "# TYPE ") != 2 || !strings.Contains(body, "\ngo_goroutines ") {
		t.Errorf("status %d:\n%s", status, body)
	}
}

// brokenCollector fails when it is read.
type brokenCollector struct{ desc *prometheus.Desc }

func (b brokenCollector) Describe(to chan<- *prometheus.Desc) { to <- b.desc }
func (b brokenCollector) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(b.desc, errors.New("no such file"))
}

func TestMetricsThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{})
	f.metrics.registry.MustRegister(brokenCollector{prometheus.NewDesc("broken", "cannot be read", nil, nil)})
	if status, body := f.get("/metrics", ""); status != http.StatusInternalServerError ||
		!strings.Contains(body, "no such file") {
		t.Errorf("status %d: %s", status, body)
	}
	if err := f.WriteMetrics(io.Discard); err == nil {
		t.Error("no error")
	}
}
