package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

// Limits of the first page in an empty browser, and of the page that a tab fetches after a change.
const (
	mostRequests     = 12
	mostBytes        = 150_000
	mostRefreshBytes = 30_000
)

// pageLoad is what a browser with an empty cache needs for a page.
type pageLoad struct {
	Requests, Bytes int
	Served          float64 // milliseconds from the request for the page itself to its last byte
	Part            float64 // the same of the style sheet or script that takes longest
	Loaded          float64 // milliseconds to the load event: also the browser's own work
}

// load loads a page into a browser without a cache.
func (b *browser) load(path string) (l pageLoad) {
	b.t.Helper()
	b.run(network.SetCacheDisabled(true))
	b.open(path)
	b.run(chromedp.Poll(`performance.getEntriesByType('navigation')[0].loadEventEnd > 0`, nil))
	b.eval(`(() => {
		const page = performance.getEntriesByType('navigation')[0], parts = performance.getEntriesByType('resource').filter((r) => !r.name.endsWith('/live'));
		return { Requests: 1 + parts.length, Bytes: [page, ...parts].reduce((n, r) => n + r.transferSize, 0), Served: page.responseEnd - page.requestStart,
			Part: Math.max(...parts.map((r) => r.responseEnd - r.requestStart)), Loaded: page.loadEventEnd };
	})()`, &l)
	return l
}

// fill submits jobs to queues, in turn.
func fill(t *testing.T, broker *harness.Broker, jobs, queues int) {
	t.Helper()
	const group = 1000
	for n := 0; n < jobs; n += group {
		list := make([]*faktory.Job, min(group, jobs-n))
		for i := range list {
			list[i] = faktory.NewJob("Work", n+i)
			list[i].Queue = fmt.Sprintf("queue-%04d", (n+i)%queues)
		}
		push(t, broker, list)
	}
}

func push(t *testing.T, broker *harness.Broker, list []*faktory.Job) {
	t.Helper()
	client, err := harness.OpenFaktory(broker, harness.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // the reply was read
	if refused, err := client.PushBulk(list); err != nil || len(refused) > 0 {
		t.Fatal(err, refused)
	}
}

// tabs are open pages as far as the server sees them: an event stream each, and a request for the page after each
// event.
type tabs struct{ events, refreshes, bytes, failed atomic.Int64 }

// openTabs opens pages until the context ends. It returns when all streams are open.
func openTabs(ctx context.Context, t *testing.T, base, path string, n int) *tabs {
	t.Helper()
	all := &tabs{}
	opened := make(chan error, n)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true}}
	get := func(path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, http.NoBody)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept-Encoding", "gzip")
		req.Header.Set("HX-Request", "true")
		return client.Do(req)
	}
	for range n {
		go func() { // ends with the context
			stream, err := get("/live")
			opened <- err
			if err != nil {
				return
			}
			defer func() { _ = stream.Body.Close() }() // the tab is closed
			for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
				if !strings.HasPrefix(lines.Text(), "event: changed") {
					continue
				}
				all.events.Add(1)
				page, err := get(path)
				if err != nil {
					break
				}
				size, err := io.Copy(io.Discard, page.Body)
				_ = page.Body.Close() // read
				if err != nil || page.StatusCode != http.StatusOK {
					all.failed.Add(1)
				}
				all.refreshes.Add(1)
				all.bytes.Add(size)
			}
		}()
	}
	for range n {
		if err := <-opened; err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestFirstPageIsSmall counts the requests and bytes of the first page with a thousand queues, and of what tabs fetch
// later.
func TestFirstPageIsSmall(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	fill(t, broker, 5000, 1000)
	b := openBrowser(t, "http://"+broker.HTTP)
	first := b.load("/")
	t.Logf("the first page: %d requests, %d bytes", first.Requests, first.Bytes)
	if first.Requests > mostRequests || first.Bytes > mostBytes {
		t.Errorf("the first page takes %d requests and %d bytes", first.Requests, first.Bytes)
	}
	b.clean("the first page")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	const n = 5
	open := openTabs(ctx, t, b.base, "/", n)
	harness.Eventually(t, func() string {
		if open.refreshes.Load() < n { // the first look at the broker counts as a change
			pushJob(t, broker, `{"queue":"queue-0001"}`)
			time.Sleep(100 * time.Millisecond)
			return fmt.Sprintf("%d refreshes", open.refreshes.Load())
		}
		return ""
	})
	if each := open.bytes.Load() / open.refreshes.Load(); each > mostRefreshBytes || open.failed.Load() > 0 {
		t.Errorf("a refresh takes %d bytes, %d failed", each, open.failed.Load())
	}
}
