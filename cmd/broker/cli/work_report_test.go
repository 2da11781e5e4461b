package cli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// A node without a leader has refused nothing: the program has run, and its result must not get lost.
func TestResultIsReportedAgainUntilAClusterHasALeader(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{0, 2} {
		told, given := 0, false
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch verb := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; {
			case verb == "complete":
				if told++; told == 1 {
					rw.WriteHeader(http.StatusServiceUnavailable)
					_, _ = io.WriteString(rw, `{"title":"Service Unavailable","code":"no_leader","detail":"no leader"}`)
					return
				}
				_, _ = io.WriteString(rw, `{"results":[{"ok":true}]}`)
			case given && batch > 0:
				_, _ = io.WriteString(rw, `{"leases":[]}`)
			case given:
				rw.WriteHeader(http.StatusNoContent)
			default:
				given = true
				_, _ = io.WriteString(rw,
					map[bool]string{true: `{"leases":[{"lease":"t","job":{}}]}`, false: `{"lease":"t","job":{}}`}[batch > 0])
			}
		}))
		base, err := url.Parse(server.URL + "/api/v1/")
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		w := &worker{
			client: &client{base: base, http: server.Client()}, queues: []string{"q"}, program: []string{"true"},
			log: &log, quit: true, batch: batch,
		}
		w.outage.say = w.say
		err = w.run(t.Context(), 1)
		server.Close()
		const want = "broker work: no leader; trying again\nbroker work: the broker answers again\n"
		if err != nil || told != 2 || log.String() != want {
			t.Errorf("batch %d: %v, reported %d times, log %s", batch, err, told, log.String())
		}
	}
}

// A node without a leader keeps a heartbeat for longer than the next one waits.
func TestHeartbeatThatIsCutOffSaysSo(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}))
	defer server.Close()
	c, err := newClient(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	end := sync.OnceFunc(func() { close(done) })
	repeat(20*time.Millisecond, done, func(ctx context.Context) {
		_, err = c.call(ctx, http.MethodPost, "leases/t/heartbeat", nil, nil, nil)
		end()
	})
	if err == nil || err.Error() != "no answer within 20ms" {
		t.Errorf("%v", err)
	}
}
