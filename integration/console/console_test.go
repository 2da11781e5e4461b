package console

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

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
		Env: []string{
			"PATH=" + dir + ":" + os.Getenv("PATH"), "BROKER_URL=http://" + b.HTTP, "BROKER_TOKEN=" + b.Password,
		},
	})
	if r.Code != 0 {
		t.Fatalf("%s: exit %d\n%s%s", line, r.Code, r.Stdout, r.Stderr)
	}
	return strings.TrimSpace(r.Stdout)
}

func TestPagesAreLive(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	b.open("/queues")
	b.wants("emails")
	shell(t, broker, "broker push brand-new x")
	b.wants("brand-new")
	b.open("/")
	shell(t, broker, "broker push newer-still x")
	b.wants("newer-still")
	b.clean("live pages")

	broker.Crash()
	b.wants("Connection lost.")
	broker.Restart()
	await(b, `document.getElementById('offline').classList.contains('shown')`, false)
}

// TestPagesAreLiveThoughScriptsComeSlowly holds back all scripts but htmx, which looks for its extensions early.
func TestPagesAreLiveThoughScriptsComeSlowly(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: broker.HTTP})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".js") && !strings.Contains(r.URL.Path, "/htmx.") {
			time.Sleep(500 * time.Millisecond)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	b := openBrowser(t, slow.URL)
	b.live()
	b.open("/queues")
	b.wants("emails")
	shell(t, broker, "broker push brand-new x")
	b.wants("brand-new")
	b.run(chromedp.Navigate("about:blank")) // the stream ends, which the proxy waits for
	b.clean("a page with slow scripts")
}

// There is no later change whose refresh would show this one too.
func TestAChangeDuringASelectionIsShownAfterIt(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	b.open("/queues")
	box := `td input[name="id"][value="emails"]`
	b.run(chromedp.Click(box))
	await(b, `changes > 0`, true) // the broker announces the state that a stream begins with
	b.afterChange(func() { shell(t, broker, "broker push below-it x") })
	var text string
	b.run(chromedp.Text("main", &text, chromedp.ByQuery))
	if strings.Contains(text, "below-it") {
		t.Error("the page was renewed below a selection")
	}
	b.run(chromedp.Click(box))
	b.wants("1 new") // the pointer is on the row
	b.run(chromedp.Click("[data-take]"))
	b.wants("below-it")
	b.clean("a change below a selection")
}

// TestARefreshSparesASelection: the rows of a refresh that comes back after the user has selected one are in another
// order.
func TestARefreshSparesASelection(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/queues?sort=-ready")
	b.wants("emails")
	shell(t, broker, "for i in $(seq 9); do broker push busier $i; done")
	var selected string
	b.eval(`new Promise((done) => {
		const names = () => [...document.querySelectorAll('td input[name="id"]:checked')].map((box) => box.value).join();
		document.addEventListener('htmx:finally:request', () => setTimeout(() => done(names()), 50), { once: true });
		htmx.trigger(document.body, 'refresh');
		document.querySelector('td input[value="emails"]').click();
	})`, &selected)
	if selected != "emails" {
		t.Errorf("selected emails, and after the refresh the page has selected %q", selected)
	}
	b.run(chromedp.Click(`button[value="pause"]`))
	b.wants("1 queue paused.")
	if !strings.Contains(shell(t, broker, "broker queues emails"), "paused") {
		t.Error("the queue is not paused")
	}
	b.clean("a refresh below a selection")
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
		if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, want) ||
			strings.Contains(policy, "unsafe") {
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
