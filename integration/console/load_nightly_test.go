//go:build nightly

package console

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// TestConsoleAtAMillionJobs measures the first page in a browser, and the processor time that open tabs cost the broker
// while jobs come and go.
func TestConsoleAtAMillionJobs(t *testing.T) {
	broker := harness.Start(t, harness.Options{}) // not parallel: it measures durations
	fill(t, broker, 1_000_000, 1000)
	b := openBrowser(t, "http://"+broker.HTTP)
	loads := make([]pageLoad, 25)
	for i := range loads {
		loads[i] = b.load("/")
	}
	// The fastest load is what the page needs; whatever else the machine does only adds to it.
	fastest := func(of func(pageLoad) float64) time.Duration {
		l := slices.MinFunc(loads, func(a, b pageLoad) int { return cmp.Compare(of(a), of(b)) })
		return time.Duration(of(l) * float64(time.Millisecond))
	}
	first := loads[0]
	answered := fastest(func(l pageLoad) float64 { return l.Served + l.Part })
	loaded := fastest(func(l pageLoad) float64 { return l.Loaded })
	t.Logf("the first page: %d requests, %d bytes; the broker takes %v for the page and %v with its slowest part; loaded in %v",
		first.Requests, first.Bytes, fastest(func(l pageLoad) float64 { return l.Served }), answered, loaded)
	// A browser requests the parts side by side once it has the page. The rest is its own work on scripts and styles,
	// which depends on the machine and not on the jobs.
	harness.CheckDuration(t, "the broker's share of the first page", answered, 50*time.Millisecond)
	harness.CheckDuration(t, "the first page in the browser", loaded, 250*time.Millisecond)
	if first.Bytes > mostBytes {
		t.Errorf("the first page takes %d bytes", first.Bytes)
	}
	for _, path := range []string{
		"/queues", "/queues?sort=-ready", "/jobs", "/jobs?state=ready&queue=queue-0007", "/queues/queue-0007",
		"/limits", "/dead",
	} {
		begin := time.Now()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.base+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // its time is enough
		took := time.Since(begin)
		t.Logf("%s answers in %v", path, took.Round(time.Millisecond/10))
		harness.CheckDuration(t, path, took, 100*time.Millisecond)
	}

	ctx, end := context.WithCancel(t.Context())
	defer end()
	go func() { // ends with the context
		for n := 0; ctx.Err() == nil; n++ {
			pushJob(t, broker, `{"queue":"queue-%04d"}`, n%1000)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	const measured, n = 60 * time.Second, 50
	alone := processorShare(t, broker, measured)
	open := openTabs(ctx, t, b.base, "/", n)
	with := processorShare(t, broker, measured)
	t.Logf("%d tabs: %.2f %% of a processor, %.2f %% without them; %d refreshes, %d bytes each",
		n, 100*with, 100*alone, open.refreshes.Load(), open.bytes.Load()/max(1, open.refreshes.Load()))
	if share := with - alone; share > 0.05 {
		t.Errorf("%d tabs take %.2f %% of a processor", n, 100*share)
	}
	if seconds := int64(measured / time.Second); open.events.Load() > n*(seconds+2) || open.events.Load() < n ||
		open.failed.Load() > 0 {
		t.Errorf("%d events, %d failed refreshes", open.events.Load(), open.failed.Load())
	}
}

// processorShare is the part of a processor that the broker uses.
func processorShare(t *testing.T, broker *harness.Broker, measured time.Duration) float64 {
	t.Helper()
	before, err := server.CPUTime(broker.PID())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(measured)
	after, err := server.CPUTime(broker.PID())
	if err != nil {
		t.Fatal(fmt.Errorf("after the measurement: %w", err))
	}
	return (after - before).Seconds() / measured.Seconds()
}
