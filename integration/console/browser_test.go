package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// browser is one tab. Messages in its console and requests to other hosts fail the test.
type browser struct {
	t    *testing.T
	ctx  context.Context // chromedp keeps the tab in it
	base string
	// window keeps the cookies and the storage.
	window cdp.BrowserContextID
	// stills names the script that switches live pages off.
	stills page.ScriptIdentifier

	mu       sync.Mutex // guards problems
	problems []string
}

// shared is the browser of all tests: each has a window of its own, with cookies and storage of its own.
var shared struct {
	start   sync.Once
	ctx     context.Context // chromedp keeps the browser in it
	end     func()
	profile string
	err     error
}

// startShared starts the browser of all tests.
func startShared(program string) {
	if shared.profile, shared.err = os.MkdirTemp("", "browser-profile-*"); shared.err != nil {
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(shared.profile),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1280, 800), chromedp.WSURLReadTimeout(harness.Patience),
	)
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocated)
	shared.ctx, shared.end = ctx, func() {
		// Debian's chromium-headless-shell is a script that starts the browser: killing it would leave the browser
		// running.
		closing, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_ = chromedp.Cancel(closing)
		end()
	}
	shared.err = chromedp.Run(ctx)
}

// endShared ends the browser. Its programs write into the profile for a moment after that.
func endShared() {
	if shared.end != nil {
		shared.end()
	}
	for deadline := time.Now().Add(10 * time.Second); shared.profile != "" && os.RemoveAll(shared.profile) != nil &&
		time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
}

// openBrowser opens a window without a past. Its pages are still, as if the user had chosen so: a refresh may move what
// a test is about to click. The tests of live pages call live.
func openBrowser(t *testing.T, base string) *browser {
	t.Helper()
	program := harness.Browser(t)
	shared.start.Do(func() { startShared(program) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	control := cdp.WithExecutor(shared.ctx, chromedp.FromContext(shared.ctx).Browser)
	window, err := target.CreateBrowserContext().Do(control)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.DisposeBrowserContext(window).Do(control) }) // else it ends with the browser
	id, err := target.CreateTarget(
		"about:blank",
	).WithBrowserContextID(window).WithNewWindow(true).WithWidth(1280).WithHeight(800).Do(control)
	if err != nil {
		t.Fatal(err)
	}
	tab, closeTab := chromedp.NewContext(shared.ctx, chromedp.WithTargetID(id))
	t.Cleanup(closeTab)
	b := &browser{t: t, ctx: tab, base: base, window: window}
	t.Cleanup(b.describe)
	host := mustParse(t, base).Host
	chromedp.ListenTarget(tab, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.note("exception: " + e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				var words []string
				for _, arg := range e.Args {
					words = append(words, string(arg.Value))
				}
				b.note("console: " + strings.Join(words, " "))
			}
		case *log.EventEntryAdded: // among others, violations of the content security policy
			if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
				b.note("browser: " + e.Entry.Text + " " + e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" && u.Scheme != "chrome" &&
				u.Host != host {
				b.note("request to another host: " + e.Request.URL)
			}
		}
	})
	// the window ends with this context
	if err := chromedp.Run(tab, network.Enable(), log.Enable(), runtime.Enable(),
		chromedp.ActionFunc(b.still)); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) still(ctx context.Context) (err error) {
	b.stills, err = page.AddScriptToEvaluateOnNewDocument(
		`if (location.protocol !== "about:") sessionStorage.setItem("live", "off")`,
	).Do(ctx)
	return err
}

// live makes the pages live that are opened from now on. They count the changes that they hear of.
func (b *browser) live() {
	b.t.Helper()
	b.run(page.RemoveScriptToEvaluateOnNewDocument(b.stills),
		chromedp.Evaluate(`location.protocol !== "about:" && sessionStorage.removeItem("live")`, nil),
		chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(
				`var changes = 0; document.addEventListener('changed', () => { changes++; });`).Do(ctx)
			return err
		}))
}

// afterChange waits until a live page hears of a change since an action began, and for as long as a refresh takes.
func (b *browser) afterChange(action func()) {
	b.t.Helper()
	var before int
	b.eval(`changes`, &before)
	action()
	await(b, fmt.Sprintf(`changes > %d`, before), true)
	b.run(chromedp.Sleep(100 * time.Millisecond))
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// describe logs, for a failed test, the state that decides whether its page renews itself.
func (b *browser) describe() {
	if !b.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	var state string
	err := chromedp.Run(ctx, chromedp.Evaluate(`JSON.stringify({at: location.href, hidden: document.hidden, live: sessionStorage.getItem('live'),
		turn: document.getElementById('stream')?.dataset.turn,
		focus: document.activeElement?.outerHTML.slice(0, 80), selected: String(getSelection()), offline: document.getElementById('offline')?.className,
		shows: document.body.innerText.slice(0, 2000)})`, &state))
	b.t.Logf("the page: %s %v", state, err)
}

func (b *browser) note(problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, problem)
}

// clean fails the test if anything was noted since the last call.
func (b *browser) clean(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Errorf("%s: %s", where, p)
	}
	b.problems = nil
}

// refused waits for the words of a refusal, and for the browser's console to report it. That report does not fail the
// test.
func (b *browser) refused(words string) {
	b.t.Helper()
	b.wants(words)
	harness.Eventually(b.t, func() string {
		b.mu.Lock()
		defer b.mu.Unlock()
		i := slices.IndexFunc(b.problems,
			func(p string) bool { return strings.Contains(p, "the server responded with a status of 4") })
		if i < 0 {
			return "the browser's console does not tell of a refusal"
		}
		b.problems = slices.Delete(b.problems, i, i+1)
		return ""
	})
}

// run performs actions; each may take long, on a busy machine.
func (b *browser) run(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		var shot []byte
		if chromedp.Run(b.ctx, chromedp.FullScreenshot(&shot, 100)) == nil {
			_ = os.WriteFile(filepath.Join("..", "..", ".cache", "failed.png"), shot, 0o600) // for people
		}
		b.t.Fatal(err)
	}
}

// open goes to a page and waits until it is there.
func (b *browser) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.base+path), chromedp.WaitReady("#content"))
}

// wants waits for text on the page.
func (b *browser) wants(text string) {
	b.t.Helper()
	harness.Eventually(b.t, func() string { return b.lacks(text) })
}

// wantsDone waits for what a page says of a change that has ended, and reports whether it said so. A page waits a second
// and a half for the end; on a busy machine it may say only that the change has begun. Then the change has ended, and the
// page is loaded again.
func (b *browser) wantsDone(text string) (said bool) {
	b.t.Helper()
	harness.Eventually(b.t, func() string {
		lacks := b.lacks(text)
		if said = lacks == ""; said || b.lacks(" has begun") != "" {
			return lacks
		}
		resp, err := http.Get(b.base + "/api/v1/operations")
		if err != nil {
			return err.Error()
		}
		if strings.Contains(textOf(b.t, resp), `"state":"running"`) {
			return "the change goes on"
		}
		b.run(chromedp.Reload())
		return ""
	})
	return said
}

// wantsInTime waits for text that a page shows once an operation has ended, which may be later than the page.
func (b *browser) wantsInTime(text string) {
	b.t.Helper()
	harness.Eventually(b.t, func() string {
		lacks := b.lacks(text)
		if lacks != "" {
			b.run(chromedp.Sleep(time.Second), chromedp.Reload())
		}
		return lacks
	})
}

// lacks is empty if the page shows a text and has arrived to its end: a notice stands on top, and what a test looks at
// next may follow far below.
func (b *browser) lacks(text string) string {
	var there bool
	quoted := strings.ReplaceAll(text, `'`, `\'`)
	err := chromedp.Run(b.ctx, chromedp.Evaluate(
		`document.readyState !== 'loading' && document.body.innerText.includes('`+quoted+`')`, &there))
	if err != nil || !there { // an error: the page is being left just now
		return "the page does not show " + text
	}
	return ""
}

// eval runs a script in the page. For what a live page is about to show, there is await.
func (b *browser) eval(script string, into any) {
	b.t.Helper()
	b.run(evaluate(script, into))
}

func evaluate(script string, into any) chromedp.Action {
	return chromedp.Evaluate(script, into, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	})
}

// await waits until a script in the page has a value. The page may be left meanwhile.
func await[T comparable](b *browser, script string, want T) {
	b.t.Helper()
	harness.Eventually(b.t, func() string {
		var got T
		if err := chromedp.Run(b.ctx, evaluate(script, &got)); err != nil {
			return fmt.Sprintf("%s: %v", script, err)
		}
		if got != want {
			return fmt.Sprintf("%s is %v, want %v", script, got, want)
		}
		return ""
	})
}

// focus focuses an element as soon as there is one. In one step: a page that renews itself may replace it between two.
func focus(selector string) chromedp.Action {
	return chromedp.Poll(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e?.focus();
		return e !== null;
	})()`, selector), nil)
}

// isWide reports whether the page stays wider than the screen: charts follow the width a moment later.
func (b *browser) isWide() (wide bool) {
	b.t.Helper()
	b.eval(`new Promise((done) => {
		const until = Date.now() + 60000;
		const look = () => {
			const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth;
			wide && Date.now() < until ? setTimeout(look, 50) : done(wide);
		};
		look();
	})`, &wide)
	return wide
}

// arrives waits until the browser is at a path.
func (b *browser) arrives(path string) {
	b.t.Helper()
	harness.Eventually(b.t, func() string {
		var at, state string
		err := chromedp.Run(b.ctx, chromedp.Location(&at), chromedp.Evaluate("document.readyState", &state))
		if err != nil || at != b.base+path || state == "loading" { // an error: the page is being left just now
			return "the browser is at " + at + " instead of " + path + ", " + state
		}
		return ""
	})
}
