package console

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// pages are those that every broker has.
var pages = []string{
	"/", "/queues", "/queues/emails", "/jobs", "/jobs?state=dead", "/running", "/scheduled", "/retrying", "/dead", "/workers", "/submit",
	"/operations", "/audit", "/settings", "/batches", "/storage", "/api",
}

// startBusy starts a broker with jobs in every state.
func startBusy(t *testing.T) *harness.Broker {
	t.Helper()
	b := harness.Start(t, harness.Options{})
	for _, line := range []string{
		`for i in 1 2 3 4 5; do broker push emails "[\"ann@example.com\", $i]" --type SendEmail; done`,
		`broker push emails '["late"]' --in 3h --type SendEmail`,
		`broker push imports row --retries 0 --type ImportRow`,
		`broker push imports row --retries 5 --type ImportRow`,
		`broker work imports --drain -- sh -c 'echo "TimeoutError: the database did not answer" >&2; exit 1' || true`,
	} {
		shell(t, b, line)
	}
	gearman, err := gearmanclient.Dial(b.Gearman)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gearman.Close() }) // the test is over
	if err := gearman.Send(gearmanclient.CanDo, "resize"); err != nil {
		t.Fatal(err)
	}
	return b
}

// shell runs a command line with the broker in its path.
func shell(t *testing.T, b *harness.Broker, line string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(harness.Binary(t), filepath.Join(dir, "broker")); err != nil {
		t.Fatal(err)
	}
	r := harness.Exec(t, harness.Command{
		Argv: []string{"bash", "-c", line},
		Env:  []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "BROKER_URL=http://" + b.HTTP, "BROKER_TOKEN=" + b.Password},
	})
	if r.Code != 0 {
		t.Fatalf("%s: exit %d\n%s%s", line, r.Code, r.Stdout, r.Stderr)
	}
	return strings.TrimSpace(r.Stdout)
}

func TestEveryPageInEverySize(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	harness.NeedNode(t)
	axe, err := os.ReadFile("../clients/node/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	id := shell(t, broker, `broker jobs --state dead -o json | grep -m1 '"id"' | cut -d'"' -f4`)
	shots := filepath.Join("..", "..", ".cache", "screenshots")
	if err := os.MkdirAll(shots, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, look := range []struct {
		name, scheme  string
		width, height int64
	}{{"wide-light", "light", 1280, 800}, {"wide-dark", "dark", 1280, 800}, {"phone-light", "light", 390, 800}, {"phone-dark", "dark", 390, 800}} {
		b.run(emulation.SetDeviceMetricsOverride(look.width, look.height, 1, false),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}}))
		for _, page := range append([]string{"/jobs/" + id}, pages...) {
			b.open(page)
			var shot []byte
			b.run(chromedp.FullScreenshot(&shot, 100))
			name := strings.Trim(strings.NewReplacer("/", "-", "?", "-", "=", "-").Replace(strings.Replace(page, id, "one", 1)), "-")
			if name == "" {
				name = "overview"
			}
			if err := os.WriteFile(filepath.Join(shots, name+"-"+look.name+".png"), shot, 0o600); err != nil {
				t.Fatal(err)
			}
			var wider bool
			b.eval(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &wider)
			if wider {
				t.Errorf("%s is wider than the screen at %s", page, look.name)
			}
			var violations []string
			b.eval(string(axe)+`; axe.run().then(r => r.violations.filter(v => v.impact == 'serious' || v.impact == 'critical')
				.map(v => v.id + ': ' + v.help + ' ' + v.nodes.map(n => n.html).slice(0, 3).join(' ')))`, &violations)
			for _, v := range violations {
				t.Errorf("%s at %s: %s", page, look.name, v)
			}
			b.clean(page + " at " + look.name)
		}
	}
}

func TestPagesChangeWhatTheyShow(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)

	b.open("/queues/emails")
	b.run(chromedp.Click(`button[value="pause"]`))
	b.wants("The queue is paused.")
	if !strings.Contains(shell(t, broker, "broker queues emails"), "paused") {
		t.Error("the queue is not paused")
	}
	b.run(chromedp.Click(`button[value="resume"]`))
	b.wants("The queue is resumed.")

	b.open("/dead")
	b.wants("ImportRow")
	b.run(chromedp.Click(`td input[name="id"]`), chromedp.WaitEnabled(`.bar button[value="retry"]`), chromedp.Click(`.bar button[value="retry"]`))
	b.wants("1 job put back.")
	b.wants("No dead jobs.")

	b.open("/jobs?queue=emails&state=ready")
	b.run(chromedp.Click("#select-all"), chromedp.WaitEnabled(`.bar button[value="delete"]`), chromedp.Click(`.bar button[value="delete"]`))
	b.wants("Delete 5 jobs?")
	b.run(chromedp.Click(`button.danger`))
	b.wants("5 jobs deleted.")

	b.open("/jobs?queue=emails&state=scheduled")
	b.run(chromedp.Click("td.main a"))
	b.wants("It is due in")
	b.run(chromedp.Click(`.head button[value="retry"]`))
	b.wants("The job is ready.")

	b.open("/submit")
	b.run(chromedp.SendKeys(`input[name="queue"]`, "greetings"), chromedp.SendKeys(`textarea[name="body"]`, `["hello"]`),
		chromedp.Click(`button[value="submit"]`))
	b.wants("The job is submitted.")
	b.wants("hello")

	b.open("/audit")
	b.wants("queue.pause")
	b.clean("forms")
}

func TestPagesAreLive(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/queues")
	b.wants("emails")
	shell(t, broker, "broker push brand-new x")
	b.wants("brand-new")
	b.open("/")
	shell(t, broker, "broker push brand-new x --in 1h")
	b.wants("brand-new")
	b.clean("live pages")
}

func TestLoginAndLogout(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{Password: "s3cret"})
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/queues")
	b.wants("Password or token")
	b.run(chromedp.SendKeys(`input[name="secret"]`, "wrong\r"))
	b.wants("Wrong password or token.")
	b.run(chromedp.SendKeys(`input[name="secret"]`, "s3cret\r"))
	b.wants("No queues yet.")
	b.run(chromedp.Click(`form[action="logout"] button`))
	b.wants("Password or token")
	b.open("/jobs")
	b.wants("Password or token")
}

// TestFirstPageIsSmallAndSafe looks at the answers without a browser.
func TestFirstPageIsSmallAndSafe(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	get := func(path string) (*http.Response, int) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+broker.HTTP+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", "gzip") // so that the size is that on the wire
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }() // read to its end
		var b bytes.Buffer
		if _, err := b.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp, b.Len()
	}
	resp, total := get("/")
	for _, want := range []string{"script-src 'self' 'nonce-", "frame-ancestors 'none'", "default-src 'none'"} {
		if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, want) || strings.Contains(policy, "unsafe") {
			t.Errorf("the policy is %q", policy)
		}
	}
	for _, link := range strings.Split(shell(t, broker, `curl -s "$BROKER_URL/" | grep -o 'static/[^"]*'`), "\n") {
		asset, n := get("/" + link)
		if asset.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", link, asset.Status)
		}
		total += n
	}
	if total > 150_000 {
		t.Errorf("the first page takes %d bytes in all", total)
	}
	t.Logf("the first page takes %d bytes in all", total)
}
