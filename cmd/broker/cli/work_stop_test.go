package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"broker/operate/service"
)

// stoppingServer has jobs that should stop from the first heartbeat on. Their leases last for 600 ms.
func stoppingServer(t *testing.T, batch bool) (*client, func() string) {
	t.Helper()
	told, given := make(chan string, 100), false
	const job = `{"lease":"t","job":{"id":"j","leased_at":"2030-01-01T00:00:00Z","lease_until":"2030-01-01T00:00:00.6Z"}}`
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing fails the test
		switch verb := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; {
		case verb == "heartbeat":
			_, _ = io.WriteString(rw, `{"cancel_requested":true,"results":[{"ok":true,"cancel_requested":true}]}`)
		case verb != "lease" && verb != "leases":
			told <- verb + " " + string(body)
			_, _ = io.WriteString(rw, `{"results":[{"ok":true}]}`)
		case given && batch:
			_, _ = io.WriteString(rw, `{"leases":[]}`)
		case given:
			rw.WriteHeader(http.StatusNoContent)
		case batch:
			given = true
			_, _ = io.WriteString(rw, `{"leases":[`+job+`]}`)
		default:
			given = true
			_, _ = io.WriteString(rw, job)
		}
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL + "/api/v1/")
	if err != nil {
		t.Fatal(err)
	}
	return &client{base: base, http: server.Client()}, func() string {
		select {
		case text := <-told:
			return text
		default:
			return "nothing"
		}
	}
}

func TestProgramOfACancelledJobGetsTERMAndThenKILL(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program, want string
		batch         int
	}{
		"it obeys":          {program: `trap 'exit 9' TERM; sleep 60 & wait`, want: "exit status 9"},
		"it does not obey":  {program: `trap '' TERM; sleep 60; sleep 60`, want: "signal: killed"},
		"it completes":      {program: `trap 'echo done; exit 0' TERM; sleep 60 & wait`, want: "complete"},
		"its only job is":   {program: `trap 'exit 9' TERM; sleep 60 & wait`, want: "exit status 9", batch: 5},
		"a child of it has": {program: `sh -c 'sleep 60; true'`, want: "signal: terminated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, told := stoppingServer(t, c.batch > 0)
			var log bytes.Buffer
			w := &worker{
				client: client, queues: []string{"a"}, program: []string{"sh", "-c", c.program}, log: &log, quit: true,
				grace: 300 * time.Millisecond, batch: c.batch,
			}
			began := time.Now()
			err := w.run(t.Context(), 1)
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if got := told(); !strings.Contains(got, c.want) {
				t.Errorf("told %s, %v, log %s", got, err, log.String())
			}
		})
	}
}

func TestHeartbeatsComeInTimeForARequestToStop(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	until := at.Add(time.Hour)
	if got := heartbeats(service.Lease{},
		service.Lease{Job: service.Job{LeasedAt: &at, LeaseUntil: &until}}); got >= 5*time.Second {
		t.Errorf("a lease of an hour is extended every %v", got)
	}
	until = at.Add(3 * time.Second)
	if got := heartbeats(service.Lease{Job: service.Job{LeasedAt: &at, LeaseUntil: &until}}); got != time.Second {
		t.Errorf("a lease of three seconds is extended every %v", got)
	}
}
