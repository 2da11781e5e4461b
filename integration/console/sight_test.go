package console

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// TestNavigationAndActionsStayVisibleWhileScrolling scrolls a long list. The navigation, the bar of actions and the
// head of the table stay, and what has the focus shows it.
func TestNavigationAndActionsStayVisibleWhileScrolling(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	pushMany(t, broker, "mail", 60)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.run(emulation.SetDeviceMetricsOverride(1440, 700, 1, false))
	b.open("/jobs")
	var at struct{ Side, Bar, BarEnd, Head float64 }
	b.eval(`new Promise((done) => { scrollTo(0, 900); setTimeout(() => {
		const box = (what) => document.querySelector(what).getBoundingClientRect();
		done({ Side: box('nav.side').top, Bar: box('.bar.bulk').top, BarEnd: box('.bar.bulk').bottom, Head: box('main thead th').top }); }, 200); })`, &at)
	if at.Side != 0 || at.Bar != 0 || at.Head < at.BarEnd-1 || at.Head > at.BarEnd+1 {
		t.Errorf("after scrolling, the navigation, the bar and the head of the table are at %+v", at)
	}
	var outline string
	b.run(focus(`td a.name`), chromedp.KeyEvent(kb.Tab))
	b.eval(
		`getComputedStyle(document.activeElement).outlineStyle + ' ' + getComputedStyle(document.activeElement).outlineWidth`,
		&outline)
	if outline != "solid 2px" {
		t.Errorf("the focus shows as %q", outline)
	}
	b.clean("a long list")
}

// TestActionsOfWorkersAreReachableOnATablet looks for buttons beyond the right edge.
func TestActionsOfWorkersAreReachableOnATablet(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.run(emulation.SetDeviceMetricsOverride(768, 960, 1, false))
	b.open("/workers")
	b.wants("resize")
	var beyond []string
	b.eval(
		`[...document.querySelectorAll('main button')].filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.getAttribute('aria-label'))`,
		&beyond)
	wider := b.isWide()
	if len(beyond) > 0 || wider {
		t.Errorf("beyond the edge are %v; the page is wider than the screen: %v", beyond, wider)
	}
	b.clean("workers")
}

// TestQueuesNamedWithDotsHavePages opens the pages of queues whose names browsers take for steps in a path.
func TestQueuesNamedWithDotsHavePages(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	b := openBrowser(t, "http://"+broker.HTTP)
	for _, name := range []string{"..", ".", "~..", "a/b"} {
		shell(t, broker, "broker push '"+name+"' x")
		b.open("/queues")
		b.run(chromedp.Click(`//a[@class="name" and text()="` + name + `"]`))
		b.wants("All jobs of this queue")
		var heading, at string
		b.run(chromedp.Evaluate(`document.querySelector("h1").innerText`, &heading),
			chromedp.Location(&at)) // the page may be refreshed meanwhile
		if u, err := url.Parse(at); err != nil || heading != name || !strings.HasPrefix(u.Path, "/queues/") {
			t.Errorf("the page of %q is %q at %s", name, heading, at)
		}
		b.run(chromedp.Click(`button[value="pause"]`))
		b.wants("The queue is paused.")
	}
	b.clean("names of dots")
}

// TestLongBodiesAreFolded shows a part of a body of 200 KiB, folded, and downloads all of it.
func TestLongBodiesAreFolded(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	id := shell(t, broker, "head -c 204800 /dev/zero | tr '\\0' x | broker push long --id long-one -")
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/jobs/long-one")
	b.wants("The first 64.0 KiB of it")
	var length, page int
	b.eval(`document.querySelector('#body pre').textContent.length`, &length)
	b.eval(`document.documentElement.outerHTML.length`, &page)
	if length != 64<<10 || page > 100_000 {
		t.Errorf("%s: the page shows %d bytes and has %d", id, length, page)
	}
	var wider bool
	b.run(chromedp.Click(`#body summary`), chromedp.WaitVisible(`#body pre`))
	b.eval(`document.querySelector('#body pre').scrollWidth > document.querySelector('#body pre').clientWidth`, &wider)
	if wider {
		t.Error("a long line is not wrapped")
	}
	var whole int
	b.eval(
		`fetch(document.querySelector('#body a[download]').href).then((r) => r.arrayBuffer()).then((a) => a.byteLength)`,
		&whole)
	if whole != 204800 {
		t.Errorf("the download has %d bytes", whole)
	}
	b.clean("a long body")
}

// TestRunningJobsShowTheirWorker leases a job over Gearman, whose workers hold jobs by their connection.
func TestRunningJobsShowTheirWorker(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	worker, err := gearmanclient.Dial(broker.Gearman)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Close() }) // the test is over
	shell(t, broker, "broker push resize x")
	if err := errors.Join(worker.Send(gearmanclient.CanDo, "resize"), worker.Send(gearmanclient.GrabJob)); err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Expect(gearmanclient.JobAssign, harness.Patience); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/running")
	b.wants("gearman 127.0.0.1:")
	b.open("/workers")
	b.wants("resize ")
	b.clean("a running job")
}
