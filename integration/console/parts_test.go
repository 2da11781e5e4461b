package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"broker/integration/harness"
)

// startWithTenants starts a broker with a queue of two tenants, one of them limited, with an operation that can be
// undone, and with changes in the audit log.
func startWithTenants(t *testing.T) *harness.Broker {
	t.Helper()
	broker := harness.Start(t, harness.Options{})
	tenants := map[string]int{"acme-with-a-long-name-as-customers-of-customers-have-them": 40, "bolt": 3}
	for tenant, n := range tenants {
		job := `{"queue":"mail","type":"Send","max_fails":1,"tags":["tenant:` + tenant + `"]},`
		api(t, broker, "POST", "/jobs", `{"jobs":[`+strings.TrimSuffix(strings.Repeat(job, n), ",")+`]}`)
	}
	api(t, broker, "PATCH", "/queues/mail", `{"sharing":{"key_tag":"tenant","fair":true}}`)
	api(t, broker, "PUT", "/limits", `{"queue":"mail","scope":"key","name":"bolt","concurrency":1}`)
	pushMany(t, broker, "old", 5)
	shell(t, broker, "broker kill --queue old --yes && broker pause mail && broker resume mail")
	return broker
}

// TestKeysAndUndoSuitEveryScreen looks at the keys of a queue, at what can be undone, and at the audit log: in every
// size and scheme, with axe, by keyboard, and without scripts.
func TestKeysAndUndoSuitEveryScreen(t *testing.T) {
	t.Parallel()
	harness.NeedNode(t)
	axe, err := os.ReadFile("../clients/node/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	broker := startWithTenants(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	for _, path := range []string{
		"/queues/mail", "/limits?queue=mail&scope=key&name=bolt#edit", "/operations", "/audit",
	} {
		b.open(path)
		b.lookEverywhere(path, path, string(axe))
	}
	b.open("/queues/mail")
	b.run(focus(`#tenants tbody tr:last-child a[role="button"]`), chromedp.KeyEvent(kb.Enter),
		chromedp.WaitVisible(`#edit input[name="concurrency"]`))
	b.wants("3 ready now.")
	b.open("/operations")
	b.run(focus(`form[action="undo"] button`), chromedp.KeyEvent(kb.Enter))
	b.wantsDone("Undone")
	b.clean("keys and undo by keyboard")

	b.run(emulation.SetScriptExecutionDisabled(true))
	shows := func(words string) {
		t.Helper()
		var text string
		b.run(chromedp.Text("main", &text, chromedp.ByQuery))
		if !contains(text, words) {
			t.Errorf("without scripts the page does not show %q: %s", words, text)
		}
	}
	b.run(chromedp.Navigate(b.base+"/queues/mail"), chromedp.Click(`#tenants tbody tr:last-child a[role="button"]`),
		chromedp.WaitVisible(`#edit input[name="concurrency"]`))
	shows("3 ready now.")
	b.run(chromedp.Navigate(b.base+"/audit"), chromedp.WaitVisible(`form[action="undo"] button`))
	shows("paused → not paused")
	b.run(chromedp.Click(`form[action="undo"] button`), chromedp.WaitVisible(".notice.ok"))
	shows("Undone.")
}

// lookEverywhere looks at the open page on every screen, and with axe on some. With -pictures it leaves pictures.
func (b *browser) lookEverywhere(path, name, axe string) {
	b.t.Helper()
	shots := filepath.Join("..", "..", ".cache", "screenshots")
	if *pictures {
		if err := os.MkdirAll(shots, 0o755); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, s := range looks {
		if s.forPictures && !*pictures && !*updateDocs {
			continue
		}
		b.look(s)
		if *pictures {
			b.picture(filepath.Join(shots, fileName(name)+"-"+s.name+".png"), true)
		}
		for _, d := range inDocs {
			if *updateDocs && d.page == name && d.look == s.name {
				b.picture(filepath.Join("..", "..", "docs", d.file), false)
			}
		}
		if b.isWide() {
			b.t.Errorf("%s is wider than the screen at %s", path, s.name)
		}
	}
	b.oneRowOfEachShape()
	for _, s := range looks {
		if s.axe != "" {
			b.look(s)
			b.checkAxe(axe, s.axe, path+" at "+s.name)
		}
	}
	b.clean(path)
}
