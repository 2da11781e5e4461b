package hostile_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/engine"
	"broker/operate/hostile"
)

// submitter is a broker with a simple HTTP front-end: a request submits a job to the queue in the path. Replies have
// 5,000 bytes.
func submitter(t *testing.T, r hostile.Rates) (url string, log *hostile.Log, now func() core.Instant) {
	t.Helper()
	e, err := engine.Open(engine.Options{Durability: engine.None})
	if err != nil {
		t.Fatal(err)
	}
	log = hostile.NewLog(7, r, nil)
	conns := hostile.NewConnections()
	h := hostile.New(e, hostile.Options{Log: log, Conns: conns})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := h.Open(core.ClientOptions{Protocol: core.HTTP, Wake: func() {}, Address: r.RemoteAddr})
		defer h.Close(c)
		h.Do(c, []core.Op{&core.Submit{Job: &core.Job{Queue: r.URL.Path}}}, nil)
		_, _ = io.WriteString(w, strings.Repeat("x", 5000)) // the connection may be closed
	}))
	s.Listener = conns.Listen(core.HTTP, s.Listener)
	s.Start()
	t.Cleanup(func() {
		s.Close()
		_ = e.Shutdown() // nothing is stored
	})
	return s.URL, log, e.Now
}

// post returns the number of received bytes of the reply, and whether the reply was complete.
func post(t *testing.T, url string) (got int, complete bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, false
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(resp.Body)
	return len(body), err == nil
}

func TestRepliesOverHTTPAreCutOff(t *testing.T) {
	t.Parallel()
	url, log, _ := submitter(t, hostile.Rates{hostile.Drop: 1})
	outcomes := make(map[string]int)
	for i := range 24 {
		before := len(log.Events())
		_, complete := post(t, url+"/mail")
		events := log.Events()[before:]
		switch {
		case complete && len(events) == 0:
			outcomes["complete"]++ // a later request about the job meets the fault
		case complete || len(events) != 1:
			t.Fatalf("reply %d: complete %v, faults %v", i, complete, events)
		case strings.HasPrefix(events[0].Detail, "connection closed before"):
			outcomes["before"]++
		default:
			outcomes["within"]++
		}
	}
	if outcomes["complete"] == 0 || outcomes["before"] == 0 || outcomes["within"] == 0 {
		t.Errorf("outcomes %v", outcomes)
	}
}

func TestRepliesOverHTTPAreLate(t *testing.T) {
	t.Parallel()
	url, log, now := submitter(t, hostile.Rates{hostile.Late: 1})
	for i := 0; len(log.Events()) == 0; i++ {
		if i == 20 {
			t.Fatal("no reply was late")
		}
		started := now()
		n, complete := post(t, fmt.Sprintf("%s/q%d", url, i))
		if n != 5000 || !complete {
			t.Fatalf("%d bytes, complete %v", n, complete)
		}
		for _, e := range log.Events() {
			by, err := time.ParseDuration(strings.TrimPrefix(e.Detail, "reply to the submission delayed by "))
			if err != nil {
				t.Fatal(err)
			}
			if took := now().Sub(started); took < by {
				t.Errorf("%s, and it took %v", e.Detail, took)
			}
		}
	}
}
