package console

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// browser is one tab. What its console says and which requests it makes to other hosts fails the test.
type browser struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // chromedp keeps the tab in it
	base string
	// stills names the script that switches live pages off.
	stills page.ScriptIdentifier

	mu       sync.Mutex // guards problems
	problems []string
}

// openBrowser starts a browser with an empty profile. Its pages are still, as if the user had chosen so: a refresh may move what
// a test is about to click. The tests of live pages call live.
func openBrowser(t *testing.T, base string) *browser {
	t.Helper()
	harness.Need(t, "chromium")
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile(t)),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1280, 800), chromedp.WSURLReadTimeout(time.Minute),
	)
	allocated, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	tab, closeTab := chromedp.NewContext(allocated)
	t.Cleanup(closeTab)
	b := &browser{t: t, ctx: tab, base: base}
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
			if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" && u.Scheme != "chrome" && u.Host != host {
				b.note("request to another host: " + e.Request.URL)
			}
		}
	})
	if err := chromedp.Run(tab, network.Enable(), log.Enable(), runtime.Enable(), chromedp.ActionFunc(b.still)); err != nil { // the browser ends with this context
		t.Fatal(err)
	}
	return b
}

// profile makes a folder for a browser. Programs of the browser write into it for a moment after it has ended.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "browser-profile-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		harness.Eventually(t, func() string {
			if err := os.RemoveAll(dir); err != nil {
				return err.Error()
			}
			return ""
		})
	})
	return dir
}

func (b *browser) still(ctx context.Context) (err error) {
	b.stills, err = page.AddScriptToEvaluateOnNewDocument(`if (location.protocol !== "about:") sessionStorage.setItem("live", "off")`).Do(ctx)
	return err
}

// live makes the pages live that are opened from now on.
func (b *browser) live() {
	b.t.Helper()
	b.run(page.RemoveScriptToEvaluateOnNewDocument(b.stills), chromedp.Evaluate(`location.protocol !== "about:" && sessionStorage.removeItem("live")`, nil))
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
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

// forget drops what was noted: the test has caused it.
func (b *browser) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = nil
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
	quoted := strings.ReplaceAll(text, `'`, `\'`)
	harness.Eventually(b.t, func() string {
		var there bool
		err := chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText.includes('`+quoted+`')`, &there))
		if err != nil || !there { // an error: the page is being left just now
			return "the page does not show " + text
		}
		return ""
	})
}

// eval runs a script in the page.
func (b *browser) eval(script string, into any) {
	b.t.Helper()
	b.run(chromedp.Evaluate(script, into, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))
}

// arrives waits until the browser is at a path.
func (b *browser) arrives(path string) {
	b.t.Helper()
	harness.Eventually(b.t, func() string {
		var at string
		if err := chromedp.Run(b.ctx, chromedp.Location(&at)); err != nil || at != b.base+path { // an error: the page is being left just now
			return "the browser is at " + at + " instead of " + path
		}
		return ""
	})
}
