package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRunSaysOnceWhyTheJobHasNotStarted(t *testing.T) {
	noContexts(t)
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			asked <- struct{}{}
			// The client reports errors.
			_, _ = w.Write([]byte(`{"id": "j", "state": "ready",
				"wait": {"reason": "worker", "text": "No worker asks for jobs of this queue."}}`))
			return
		}
		for range waitHintAfter + 3 {
			<-asked
		}
		_, _ = w.Write([]byte(`{"id": "j", "state": "done", "outcome": {"success": true, "result": "olleh"}}`))
	}))
	defer server.Close()
	out, err := executed(t, "run", "reverse", "hello", "--server", server.URL)
	const want = "still waiting: No worker asks for jobs of this queue\n"
	if err != nil || !strings.Contains(out, "olleh") || strings.Count(out, want) != 1 {
		t.Errorf("%v, %q; want %q once", err, out, want)
	}
}
