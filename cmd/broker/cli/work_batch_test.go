package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A program gets the bodies as lines of JSON, and its exit code decides about all jobs.
func TestBatchOfJobsEndsAsItsProgramDoes(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		`test "$(cat)" = '[1,"<a>"]
"two\nlines"
{"base64":"AP8="}
""' && test $BROKER_BATCH = 4`: "complete",
		`echo no >&2; exit 3`: "fail",
	} {
		var told []string
		var asked map[string]any
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // what is missing fails the test
			switch {
			case !strings.HasSuffix(r.URL.Path, "/leases"):
				told = append(told, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]+string(body))
				_, _ = io.WriteString(rw,
					`{"results":[{"ok":true},{"ok":true},{"ok":false,"code":"lease_lost"},{"ok":true}]}`)
			case asked == nil:
				_ = json.Unmarshal(body, &asked)
				_, _ = io.WriteString(rw,
					`{"leases":[{"lease":"t1","job":{"args":[1,"<a>"]}},{"lease":"t2","job":{"body":"two\nlines"}},`+
						`{"lease":"t3","job":{"id":"j3","body_base64":"AP8="}},{"lease":"t4","job":{}}]}`)
			default:
				_, _ = io.WriteString(rw, `{"leases":[]}`)
			}
		}))
		base, err := url.Parse(server.URL + "/api/v1/")
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		w := &worker{
			client: &client{base: base, http: server.Client()}, queues: []string{"a", "b"},
			program: []string{"sh", "-c", program},
			log:     &log, quit: true, batch: 4,
		}
		err = w.run(t.Context(), 1)
		server.Close()
		if len(told) != 1 || !strings.HasPrefix(told[0], want) || strings.Count(told[0], `"lease"`) != 4 ||
			asked["max"] != 4.0 {
			t.Errorf("%s: told %v, asked %v, log %s", program, told, asked, log.String())
		}
		if (err == nil) != (want == "complete") || !strings.Contains(log.String(), "job j3: "+want+": lease_lost") {
			t.Errorf("%s: %v, log %s", program, err, log.String())
		}
		if want == "fail" &&
			(!strings.Contains(told[0], `"message":"no"`) || !strings.Contains(told[0], "exit status 3")) {
			t.Errorf("told %v", told)
		}
	}
}
