package integration_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// shadowPatience is how long servers may take before a shadow takes that for a difference or a loss: less than a test
// waits, and longer than a busy machine stands still.
const shadowPatience = "90s"

// startShadow starts a shadow in front of a server and returns the addresses of its port and its page.
func startShadow(t *testing.T, protocol, upstream string, args ...string) (shadow *harness.Child, listen, page string) {
	t.Helper()
	listen, err := server.FreeAddr()
	check(t, err)
	page, err = server.FreeAddr()
	check(t, err)
	shadow = harness.Spawn(t, harness.Command{Argv: append([]string{
		harness.Binary(t), "shadow", "--protocol", protocol, "--upstream", upstream, "--listen", listen, "--http", page,
		"--patience", shadowPatience,
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

			r := endShadow(t, shadow, file)
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

// endShadow ends a shadow and returns its report.
func endShadow(t *testing.T, shadow *harness.Child, file string) (r comparison) {
	t.Helper()
	check(t, shadow.Signal(syscall.SIGINT))
	code, err := shadow.Wait(harness.Patience)
	check(t, err)
	equal(t, "exit code", code, 0)
	text, err := os.ReadFile(file)
	check(t, err)
	check(t, json.Unmarshal(text, &r))
	return r
}

// gearmand drops the job of a worker that dies, if it may run a job only once. The broker would deliver it again. After
// a restart of gearmand, the comparison starts anew and finds nothing.
func TestShadowFindsAJobThatTheServerDrops(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	harness.Need(t, "gearmand")
	gearmand, err := server.StartGearmand(t.TempDir(), "--job-retries=1")
	check(t, err)
	t.Cleanup(gearmand.Kill)
	host, port := server.Split(gearmand.Addr)
	file := filepath.Join(t.TempDir(), "shadow.json")
	shadow, listen, _ := startShadow(t, "gearman", gearmand.Addr, "--report", file, "--patience", "20s")
	job := func() string {
		producer, err := gearmanclient.Dial(listen)
		check(t, err)
		handle, err := producer.Submit(gearmanclient.SubmitJobBg, "mail", "", "hello")
		check(t, err)
		check(t, producer.Close())
		return handle
	}
	worker := func() *gearmanclient.Client {
		w, err := gearmanclient.Dial(listen)
		check(t, err)
		check(t, w.Send(gearmanclient.CanDo, "mail"))
		return w
	}

	lost, dies, lives := job(), worker(), worker()
	got, _, _, _, err := dies.Grab(harness.Patience)
	check(t, err)
	equal(t, "job", got, lost)
	check(t, dies.Close())
	check(t, lives.Send(gearmanclient.GrabJob))
	_, err = lives.Expect(gearmanclient.NoJob, harness.Patience)
	check(t, err)
	check(t, lives.Send(gearmanclient.PreSleep))
	shadow.AwaitLines(1, func(line string) bool { return strings.HasPrefix(line, "different: GRAB_JOB") })
	check(t, lives.Close())

	gearmand.Kill()
	met, err := net.Dial("tcp", listen) // a restart that no client meets is not noticed
	check(t, err)
	_, _ = met.Read(make([]byte, 1)) // until the shadow closes the connection
	check(t, met.Close())
	next := harness.Spawn(t, harness.Command{
		Argv: []string{"gearmand", "--listen=" + host, "--port=" + port, "--log-file=stderr"},
	})
	check(t, server.WaitListening(next.Process, gearmand.Addr, harness.Patience))
	handle, again := job(), worker()
	got, _, _, _, err = again.Grab(harness.Patience)
	check(t, err)
	equal(t, "job", got, handle)
	check(t, again.Send(gearmanclient.WorkComplete, handle, ""))
	check(t, again.Send(gearmanclient.EchoReq, "done"))
	_, err = again.Expect(gearmanclient.EchoRes, harness.Patience)
	check(t, err)
	check(t, again.Close())
	r := endShadow(t, shadow, file)
	if r.Different != 1 || r.Jobs.Delivered != 2 || r.Jobs.OnlyServer != 0 || len(r.Jobs.FromBroker) != 1 ||
		r.Jobs.FromBroker[0] != lost || len(r.Gaps) != 1 || r.Dropped != "" {
		t.Errorf("%+v", r)
	}
}

// The way back: clients use the broker, and the old server gets the same requests.
func TestShadowComparesTheWayBack(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	file := filepath.Join(t.TempDir(), "shadow.json")
	shadow, listen, _ := startShadow(t, "gearman", b.Gearman, "--against", upstreamGearmand(t), "--report", file)
	for _, app := range recordings {
		if app.name == "gearman command" {
			app.app(t, listen)
		}
	}
	if r := endShadow(t, shadow, file); r.Different > 0 || r.Dropped != "" || r.Equal < 20 || r.Jobs.Delivered != 10 {
		t.Errorf("%+v", r)
	}
}
