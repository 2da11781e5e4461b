package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"broker/operate/service"
)

// burst is a handler behind limitReads that counts concurrent requests, with a number of clients.
type burst struct {
	t       *testing.T
	url     string
	working atomic.Int64
	most    atomic.Int64
	begin   chan struct{} // a request waits for this before it writes
	end     chan struct{} // and for this before it ends
	done    chan struct{} // one value for each answered request
}

func newBurst(t *testing.T) *burst {
	t.Helper()
	c := &burst{t: t, begin: make(chan struct{}), end: make(chan struct{}), done: make(chan struct{}, 100)}
	server := httptest.NewServer(limitReads(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isHealth(r.URL.Path) {
			return
		}
		for n := c.working.Add(1); ; {
			if most := c.most.Load(); n <= most || c.most.CompareAndSwap(most, n) {
				break
			}
		}
		<-c.begin
		c.working.Add(-1)
		w.WriteHeader(http.StatusOK)
		<-c.end
	})))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *burst) ask(path string) {
	resp, err := http.Get(c.url + path)
	if err != nil {
		c.t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close() // read to its end
	c.done <- struct{}{}
}

func TestConcurrentReadsAreLimited(t *testing.T) {
	t.Parallel()
	c := newBurst(t)
	most := int64(readsPerProcessor * runtime.GOMAXPROCS(0))
	clients := 3 * int(most)
	for range clients {
		go c.ask("/api/v1/jobs")
	}
	for range clients { // each gives up its place when its response begins, before it ends
		c.begin <- struct{}{}
	}
	if got := c.most.Load(); got > most {
		t.Errorf("%d reads were worked on at once, more than %d", got, most)
	}
	close(c.end)
	for range clients {
		<-c.done
	}
}

func TestHealthNeedsNoTurn(t *testing.T) {
	t.Parallel()
	c := newBurst(t)
	most := readsPerProcessor * runtime.GOMAXPROCS(0)
	for range 2 * most {
		go c.ask("/api/v1/jobs")
	}
	for c.working.Load() < int64(most) {
		runtime.Gosched()
	}
	c.ask("/healthz")
	<-c.done
	close(c.begin)
	close(c.end)
	for range 2 * most {
		<-c.done
	}
}

// Readers of a page may wait for each other, because one of them reads the service while it holds a lock.
func TestReadersOfAPageMayWaitForEachOther(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	var mu sync.Mutex
	var entered atomic.Int64
	server := httptest.NewServer(limitReads(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered.Add(1)
		mu.Lock()
		defer mu.Unlock()
		for entered.Load() < int64(readsPerProcessor*runtime.GOMAXPROCS(0)) { // all places are taken
			runtime.Gosched()
		}
		if _, _, err := f.server.Service().Queues(r.Context(), service.Caller{},
			service.QueueFilter{Limit: 1}); err != nil {
			t.Error(err)
		}
	})))
	defer server.Close()
	const clients = 100
	answered := make(chan struct{})
	for range clients {
		go func() {
			defer func() { answered <- struct{}{} }()
			resp, err := http.Get(server.URL + "/queues")
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close() // no body
		}()
	}
	deadline := time.After(time.Minute)
	for range clients {
		select {
		case <-answered:
		case <-deadline:
			t.Fatal("readers wait for each other without end")
		}
	}
}

func TestChangesAndProfilesTakeNoTurns(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]bool{
		"GET /api/v1/jobs": true, "HEAD /": true, "GET /metrics": true, "POST /api/v1/jobs": false,
		"GET /debug/pprof/profile": false,
		"GET /readyz":              false, "GET /api/v1/operations/1?wait=10s": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := takesTurns(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s: %v", request, got)
		}
	}
}
