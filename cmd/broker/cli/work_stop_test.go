package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"broker/operate/service"
)

// stoppingServer has jobs that should stop once a file is there. Their leases last for 600 ms.
func stoppingServer(t *testing.T, batch bool, file string) (*client, func() string) {
	t.Helper()
	told, given := make(chan string, 100), false
	const job = `{"lease":"t","job":{"id":"j","leased_at":"2030-01-01T00:00:00Z","lease_until":"2030-01-01T00:00:00.6Z"}}`
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing fails the test
		switch verb := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; {
		case verb == "heartbeat":
			_, err := os.Stat(file)
			_, _ = fmt.Fprintf(rw, `{"cancel_requested":%t,"results":[{"ok":true,"cancel_requested":%[1]t}]}`, err == nil)
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
		"it obeys":          {program: `trap 'exit 9' TERM; : > %s; sleep 300 & wait`, want: "exit status 9"},
		"it does not obey":  {program: `trap '' TERM; : > %s; sleep 300; sleep 300`, want: "signal: killed"},
		"it completes":      {program: `trap 'echo done; exit 0' TERM; : > %s; sleep 300 & wait`, want: "complete"},
		"its only job is":   {program: `trap 'exit 9' TERM; : > %s; sleep 300 & wait`, want: "exit status 9", batch: 5},
		"a child of it has": {program: `sh -c ': > %s; sleep 300; true'`, want: "signal: terminated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := filepath.Join(t.TempDir(), "runs") // the program makes it once it is ready for the signal
			client, told := stoppingServer(t, c.batch > 0, runs)
			var log bytes.Buffer
			w := &worker{
				client: client, queues: []string{"a"}, program: []string{"sh", "-c", fmt.Sprintf(c.program, runs)},
				log: &log, quit: true, grace: time.Minute, batch: c.batch,
			}
			if c.want == "signal: killed" {
				w.grace = 300 * time.Millisecond
			}
			began := time.Now()
			err := w.run(t.Context(), 1)
			if took := time.Since(began); took > 2*time.Minute {
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
