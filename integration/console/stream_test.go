package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// TestTabsShareOneStream opens more tabs than a browser has connections to a host. All are live, over one event stream,
// which stays when the tab that opened it is closed.
func TestTabsShareOneStream(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	var streams atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: broker.HTTP})
	counting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/live") {
			streams.Add(1)
			defer streams.Add(-1)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(counting.Close)
	first := openBrowser(t, counting.URL)
	first.live()
	first.open("/queues")
	tabs := []*browser{first}
	for range 7 {
		tab := first.another()
		tab.open("/queues")
		tabs = append(tabs, tab)
	}
	harness.Eventually(t, func() string {
		if n := streams.Load(); n != 1 {
			return "the number of streams is not 1"
		}
		return ""
	})
	shell(t, broker, "broker push brand-new x")
	for _, tab := range tabs {
		tab.wants("brand-new")
	}
	first.run(chromedp.Navigate("about:blank"))
	shell(t, broker, "broker push newer-still x")
	for _, tab := range tabs[1:] {
		tab.wants("newer-still")
		tab.run(chromedp.Navigate("about:blank"))
	}
	harness.Eventually(t, func() string {
		if streams.Load() != 0 {
			return "the stream stays open without a tab"
		}
		return ""
	})
	first.clean("tabs")
}

// another opens a window that shares cookies, storage and workers.
func (b *browser) another() *browser {
	b.t.Helper()
	control := cdp.WithExecutor(shared.ctx, chromedp.FromContext(shared.ctx).Browser)
	id, err := target.CreateTarget(
		"about:blank",
	).WithBrowserContextID(b.window).WithNewWindow(true).WithWidth(1280).WithHeight(800).Do(control)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, closeTab := chromedp.NewContext(shared.ctx, chromedp.WithTargetID(id))
	b.t.Cleanup(closeTab)
	if err := chromedp.Run(ctx); err != nil { // the window ends with this context
		b.t.Fatal(err)
	}
	return &browser{t: b.t, ctx: ctx, base: b.base, window: b.window}
}

// TestPagesAreLiveWithoutSharedWorkers takes them from the browser: the page then has a stream of its own.
func TestPagesAreLiveWithoutSharedWorkers(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`delete window.SharedWorker`).Do(ctx)
		return err
	}))
	b.open("/queues")
	b.afterChange(func() { shell(t, broker, "broker push brand-new x") })
	b.wants("brand-new")
	b.clean("a page with its own stream")
}
