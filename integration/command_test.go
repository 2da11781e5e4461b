package integration_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// brokerCommand runs a command of the broker.
func brokerCommand(t *testing.T, args ...string) harness.Result {
	t.Helper()
	harness.BrokerOnly(t)
	return harness.Exec(t, harness.Command{Argv: append([]string{harness.Binary(t)}, args...)})
}

func TestErrorNamesThePortInUse(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"workq", "gearman", "faktory", "http"} {
		b := harness.Prepare(t, harness.Options{})
		addr := map[string]string{
			"workq": b.Workq, "gearman": b.Gearman, "faktory": b.Faktory, "http": b.HTTP,
		}[protocol]
		taken, err := net.Listen("tcp", addr)
		check(t, err)
		r := brokerCommand(t, b.Argv()[1:]...)
		check(t, taken.Close())
		equal(t, protocol+": exit code", r.Code, 1)
		out := r.Stdout + r.Stderr
		if !strings.Contains(out, addr) || !strings.Contains(strings.ToLower(out), protocol) {
			t.Errorf("the message does not name both %s and %s: %s", protocol, addr, out)
		}
	}
}

func TestBadSettingsAreListedAllAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "bad.toml")
	check(t, os.WriteFile(config,
		[]byte("durability = \"sometimes\"\nno_such_setting = 1\n[gearman]\nlisten = \"nonsense\"\n"), 0o600))
	for _, args := range [][]string{
		{"check-config", "--config", config}, {"serve", "--config", config, "--data", dir},
	} {
		r := brokerCommand(t, args...)
		equal(t, args[0]+": exit code", r.Code, 1)
		for _, word := range []string{"durability", "no_such_setting", "gearman"} {
			if !strings.Contains(r.Stdout+r.Stderr, word) {
				t.Errorf("%s: the problems do not include %s: %s%s", args[0], word, r.Stdout, r.Stderr)
			}
		}
	}
	r := brokerCommand(t, "serve", "--data", dir, "--durability", "sometimes", "--workq", "nonsense", "--faktory",
		"127.0.0.1:99999")
	equal(t, "flags: exit code", r.Code, 1)
	for _, word := range []string{"durability", "workq", "faktory"} {
		if !strings.Contains(r.Stdout+r.Stderr, word) {
			t.Errorf("the problems do not include %s: %s%s", word, r.Stdout, r.Stderr)
		}
	}
}

func TestVersionAndUnknownCommand(t *testing.T) {
	t.Parallel()
	r := brokerCommand(t, "version")
	equal(t, "exit code", r.Code, 0)
	equal(t, "something is printed", strings.TrimSpace(r.Stdout) != "", true)
	r = brokerCommand(t, "no-such-command")
	equal(t, "exit code is not 0", r.Code != 0, true)
}

func TestFlagsWinOverEnvironmentWinsOverFile(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	// The file and the environment set an invalid durability, so that the result shows which source wins.
	b := harness.Prepare(t, harness.Options{
		Config: "durability = \"sometimes\"\n", Env: []string{"BROKER_DURABILITY=never"}, Durability: "none",
	})
	check(t, b.BrokerServer.Start())
	code, _ := b.Terminate()
	equal(t, "exit code", code, 0)
}

func TestFrontendsCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Prepare(t, harness.Options{Args: []string{"--faktory", "off"}})
	check(t, b.BrokerServer.Start())
	if c, err := net.Dial("tcp", b.Faktory); err == nil {
		_ = c.Close() // it should have failed
		t.Error("the Faktory port is open although it is off")
	}
	_, err := harness.DialGearman(t, b).Submit(gearmanclient.SubmitJobBg, "f", "", "x")
	check(t, err)
}

func TestUnixSockets(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	dir, err := os.MkdirTemp("", "brk") // socket paths must be short
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "w.sock")
	b := harness.Prepare(t, harness.Options{Args: []string{"--workq", "unix:" + path}})
	for range 2 { // the socket file of a killed broker does not prevent the next start
		check(t, b.BrokerServer.Start())
		c, err := net.Dial("unix", path)
		check(t, err)
		_, err = c.Write([]byte("lease q 0\r\n"))
		check(t, err)
		buf := make([]byte, 100)
		n, err := c.Read(buf)
		check(t, err)
		equal(t, "reply", string(buf[:n]), "-TIMEOUT\r\n")
		check(t, c.Close())
		b.Crash()
	}
}

func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	_, err := harness.DialGearman(t, b).Submit(gearmanclient.SubmitJobBg, "measured", "", "x")
	check(t, err)
	for _, path := range []string{"/healthz", "/readyz"} {
		status, _, err := b.Get(path)
		check(t, err)
		equal(t, path, status, http.StatusOK)
	}
	for _, parts := range [][]string{
		{"broker_jobs{", `queue="measured"`, `state="ready"`, " 1"},
		{"broker_submitted_jobs_total{", `protocol="gearman"`, " 1"},
		{"broker_connections", "gearman", " 1"},
		{"broker_", "commit", "_bucket"},
	} {
		harness.Eventually(t, func() string {
			lines := strings.Split(metricsOf(t, b), "\n")
			if !slices.ContainsFunc(lines, func(line string) bool { return containsAll(line, parts) }) {
				return fmt.Sprintf("no metric contains all of %q", parts)
			}
			return ""
		})
	}
}

func TestPasswordGuardsMetricsButNotHealth(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Password: "secret"})
	for _, path := range []string{"/healthz", "/readyz", "/health"} {
		equal(t, path, statusWithout(t, b, path), http.StatusOK)
	}
	for _, path := range []string{"/metrics", "/stats"} {
		equal(t, path, statusWithout(t, b, path), http.StatusUnauthorized)
	}
	check(t, dialFaktory(t, b).Push(fktJob("numbers", 1)))
	status, body, err := b.Get("/stats")
	check(t, err)
	equal(t, "/stats with the password", status, http.StatusOK)
	var state faktory.FaktoryState
	check(t, json.Unmarshal([]byte(body), &state))
	equal(t, "queue", state.Data.Queues["numbers"], uint64(1))
}

// statusWithout sends a request without a password.
func statusWithout(t *testing.T, b *harness.Broker, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.HTTP+path, nil)
	check(t, err)
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	check(t, resp.Body.Close())
	return resp.StatusCode
}

func containsAll(line string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(line, part) {
			return false
		}
	}
	return true
}

func TestStartPrintsEveryListener(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	out := awaitReady(t, b.Process, 0)
	for _, addr := range []string{b.Workq, b.Gearman, b.Faktory, b.HTTP} {
		if !strings.Contains(out, addr) {
			t.Errorf("%s is not logged at the start", addr)
		}
	}
	for range 3 {
		_, err := harness.DialGearman(t, b).Submit(gearmanclient.SubmitJobBg, "counted", "", "x")
		check(t, err)
	}
	b.Crash()
	b.Restart()
	// The number of recovered jobs is logged at the start.
	if again := awaitReady(t, b.Process, len(out)); !strings.Contains(again, `"ready":3`) {
		t.Errorf("the three recovered jobs are not logged: %s", again)
	}
}

func TestNamespacePutsAFrontendApart(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Config: "[gearman]\nnamespace = \"g.\"\n"})
	gearman, wq := harness.DialGearman(t, b), harness.DialWorkq(t, b)
	_, err := gearman.Submit(gearmanclient.SubmitJobBg, "apart", "", "x")
	check(t, err)
	equal(t, "as Gearman sees it", statusRow(t, b, "apart"), "1 0 0")
	equal(t, "under its own name elsewhere", len(drainInOrder(t, b, "apart")), 0)
	l, err := wq.Lease(0, "g.apart")
	check(t, err)
	equal(t, "under the prefix", string(l.Body), "x")
}
