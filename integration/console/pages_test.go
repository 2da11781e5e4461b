package console

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"broker/integration/harness"
	"broker/integration/server"
)

var (
	updateDocs = flag.Bool("docs", false, "write the pictures of docs")
	pictures   = flag.Bool("pictures", false, "leave pictures of all pages in .cache/screenshots")
	demoURL    = flag.String("demo", "", "address of a demo that runs already, whose charts have a past to show")
)

// pages are those that every broker has.
var pages = []string{
	"/", "/queues", "/queues/payments", "/jobs", "/jobs?state=ready&queue=newsletter&text=reader-01", "/running",
	"/scheduled", "/retrying",
	"/dead", "/finished", "/workers", "/schedules", "/batches", "/limits", "/submit", "/storage", "/cluster",
	"/operations", "/audit", "/settings", "/api",
}

// inDocs are the pictures of docs, by page, as they look wide and in the scheme.
var inDocs = []docPicture{
	{"/", "wide-light", "console.png"}, {"/jobs/one", "wide-dark", "console-job.png"},
}

// docPicture is a page as docs show it.
type docPicture struct{ page, look, file string }

// screen is a size of the window with a scheme of colours.
type screen struct {
	name, scheme  string
	width, height int64
	forPictures   bool   // it differs from others in nothing but its colours
	axe           string // options of the checks for people who cannot see well, if they run on it
}

// looks are the screens that pages are looked at on. What axe finds depends on the screen in colours and sizes only, so
// that the second one is checked for nothing else.
var looks = []screen{
	{
		"wide-light", "light", 1280, 1000, false,
		`rules: {'target-size': {enabled: true}, 'label-content-name-mismatch': {enabled: true}}`,
	},
	{"wide-dark", "dark", 1280, 1000, true, ""},
	{"phone-light", "light", 390, 844, true, ""},
	{"phone-dark", "dark", 390, 844, false, `runOnly: ['color-contrast', 'target-size', 'scrollable-region-focusable']`},
	{"zoomed-to-200-percent", "light", 640, 500, false, ""},
}

// startDemo runs broker demo and returns the address of its console.
func startDemo(t *testing.T) string {
	t.Helper()
	if *demoURL != "" {
		return *demoURL
	}
	argv, url := []string{harness.Binary(t), "demo"}, ""
	for _, flag := range []string{"--workq", "--gearman", "--faktory", "--http"} {
		address, err := server.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		argv, url = append(argv, flag, address), "http://"+address
	}
	child := harness.Spawn(t, harness.Command{Argv: argv, Env: []string{"TMPDIR=" + t.TempDir()}})
	child.AwaitLines(1, func(line string) bool { return strings.Contains(line, "The console is at "+url) })
	return url
}

// oneJob is the id of a job in a state.
func oneJob(t *testing.T, url, state string) string {
	t.Helper()
	var list struct{ Jobs []struct{ ID string } }
	harness.Eventually(t, func() string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/jobs?limit=1&state="+state,
			http.NoBody)
		if err != nil {
			return err.Error()
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = resp.Body.Close() }() // read
		if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
			return err.Error()
		}
		if len(list.Jobs) == 0 {
			return "no job is " + state
		}
		return ""
	})
	return list.Jobs[0].ID
}

// TestEveryPageInEverySize looks at all pages while clients of four protocols are at work.
func TestEveryPageInEverySize(t *testing.T) {
	t.Parallel()
	harness.Browser(t)
	harness.NeedNode(t)
	axe, err := os.ReadFile("../clients/node/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	url := startDemo(t)
	b := openBrowser(t, url)
	job := "/jobs/" + oneJob(t, url, "retrying")
	for _, path := range append([]string{job}, pages...) {
		b.open(path)
		b.lookEverywhere(path, strings.Replace(path, job, "/jobs/one", 1), string(axe))
	}
}

// look shows the page on a screen.
func (b *browser) look(s screen) {
	b.t.Helper()
	b.run(emulation.SetDeviceMetricsOverride(s.width, s.height, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			// no colour is on its way
			{Name: "prefers-color-scheme", Value: s.scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"},
		}))
}

// oneRowOfEachShape removes rows that differ from an earlier row of their table in nothing but texts and values of
// attributes, apart from classes: axe finds the same in them, and takes a minute for some pages.
func (b *browser) oneRowOfEachShape() {
	b.t.Helper()
	b.eval(`(() => {
		const shape = (e) => '<' + [e.tagName, e.getAttribute('class'), e.getAttribute('role'), e.getAttribute('type'), ...e.getAttributeNames()].join(' ') + [...e.childNodes].map((c) => c.nodeType === 1 ? shape(c) : c.nodeType === 3 && c.data.trim() ? 'text' : '').join('') + '>';
		for (const list of document.querySelectorAll('main tbody, main section')) {
			const seen = new Set();
			for (const row of [...list.children].filter((e) => e.matches('tr, details.api'))) {
				const s = shape(row);
				if (seen.has(s)) row.remove();
				seen.add(s);
			}
		}
	})()`, nil)
}

func fileName(path string) string {
	name := strings.Trim(strings.NewReplacer("/", "-", "?", "-", "=", "-", "&", "-").Replace(path), "-")
	if name == "" {
		return "overview"
	}
	return name
}

// picture writes a picture of the page, of all of it or of what the screen shows.
func (b *browser) picture(file string, whole bool) {
	b.t.Helper()
	var shot []byte
	if whole {
		b.run(chromedp.FullScreenshot(&shot, 100))
	} else {
		b.run(chromedp.Sleep(time.Second), chromedp.CaptureScreenshot(&shot)) // the charts are drawn
	}
	if err := os.WriteFile(file, shot, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// checkAxe fails the test for what people with a screen reader or weak eyes cannot use. The navigation is the same on
// all pages but for its numbers, and is checked with the overview.
func (b *browser) checkAxe(axe, options, where string) {
	b.t.Helper()
	var violations []string
	var loaded bool
	if b.eval(`typeof axe !== 'undefined'`, &loaded); !loaded {
		b.eval(axe+`; 0`, nil)
	}
	b.eval(`axe.run(location.pathname === '/' ? document : {exclude: ['#nav']}, {resultTypes: ['violations'], preload: false, `+options+`})
		.then(r => r.violations.filter(v => v.impact == 'serious' || v.impact == 'critical')
		.map(v => v.id + ': ' + v.help + ' ' + v.nodes.map(n => n.html).slice(0, 3).join(' ')))`, &violations)
	for _, v := range violations {
		b.t.Errorf("%s: %s", where, v)
	}
}

// TestPagesWorkWithoutScript reads the pages with scripts switched off.
func TestPagesWorkWithoutScript(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.run(emulation.SetScriptExecutionDisabled(true), page.Enable())
	for _, page := range []struct{ path, wants string }{
		{"/queues", "emails"},
		{"/dead", "TimeoutError"},
		{"/jobs?queue=imports&state=dead", "ImportRow"}, // the last: its job is put back below
	} {
		b.run(chromedp.Navigate(b.base + page.path))
		var text string
		b.run(chromedp.Text("main", &text, chromedp.ByQuery))
		if !strings.Contains(text, page.wants) {
			t.Errorf("%s without script does not show %s", page.path, page.wants)
		}
	}
	b.run(chromedp.Click(`td input[name="id"]`), chromedp.Click(`.bar button[value="retry"]`))
	b.wantsDone("1 job put back.")
}

// TestDemoBeginsWithDeadJobs does not wait for the odds that a job fails often enough.
func TestDemoBeginsWithDeadJobs(t *testing.T) {
	t.Parallel()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, startDemo(t)+"/api/v1/jobs?state=dead",
		http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read
	queues := map[string]int{}
	var list struct{ Jobs []struct{ Queue string } }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, j := range list.Jobs {
		queues[j.Queue]++
	}
	for _, queue := range []string{"payments", "inventory", "emails", "webhooks"} {
		if queues[queue] == 0 {
			t.Errorf("no dead job in %s: %v", queue, queues)
		}
	}
}
