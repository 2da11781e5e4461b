package integration_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

// startShadow starts a shadow in front of a server and returns the addresses of its port and its page.
func startShadow(t *testing.T, protocol, upstream string, args ...string) (shadow *harness.Child, listen, page string) {
	t.Helper()
	listen, err := server.FreeAddr()
	check(t, err)
	page, err = server.FreeAddr()
	check(t, err)
	shadow = harness.Spawn(t, harness.Command{Argv: append([]string{
		harness.Binary(t), "shadow", "--protocol", protocol, "--upstream", upstream, "--listen", listen, "--http", page,
	}, args...)})
	shadow.AwaitLines(1, func(line string) bool { return line == "ready" })
	return shadow, listen, page
}

// The apps that are recorded elsewhere see their own server, and the broker in memory replies the same.
func TestShadowComparesApps(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, app := range recordings {
		t.Run(app.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "shadow.json")
			shadow, listen, page := startShadow(t, app.protocol, app.upstream(t), "--report", file)
			app.app(t, listen)

			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+page+"/", http.NoBody)
			check(t, err)
			resp, err := http.DefaultClient.Do(req)
			check(t, err)
			_ = resp.Body.Close() // the report has the same
			equal(t, "status of the page", resp.StatusCode, http.StatusOK)

			check(t, shadow.Signal(syscall.SIGINT))
			code, err := shadow.Wait(harness.Patience)
			check(t, err)
			equal(t, "exit code", code, 0)
			text, err := os.ReadFile(file)
			check(t, err)
			var r comparison
			check(t, json.Unmarshal(text, &r))
			if r.Different > 0 || r.Dropped != "" || r.Equal < app.least {
				t.Errorf("%+v", r)
			}
			html, err := os.ReadFile(file + ".html")
			check(t, err)
			if !strings.Contains(string(html), "<td>total<td>") {
				t.Errorf("page %s", html)
			}
		})
	}
}
