package console

import (
	"fmt"
	"strings"
	"testing"

	cdbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

// compact makes one line of text.
func compact(text string) string { return strings.Join(strings.Fields(text), " ") }

func contains(text, part string) bool { return strings.Contains(text, part) }

// TestBatchesAreATree makes nested batches with the official Faktory client and follows the links of their jobs.
func TestBatchesAreATree(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	client, err := harness.OpenFaktory(broker, harness.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // the test is over
	job := func(kind string) *faktory.Job { return faktory.NewJob(kind, 1) }
	outer := faktory.NewBatch(client)
	outer.Description, outer.Success = "import of May", job("Report")
	part := job("ImportRows")
	err = outer.Jobs(func() error {
		if err := outer.Push(part); err != nil {
			return err
		}
		inner := faktory.NewBatch(client)
		inner.Description, inner.ParentBid, inner.Complete = "pictures", outer.Bid, job("Gallery")
		return inner.Jobs(func() error { return inner.Push(job("Resize")) })
	})
	if err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/batches")
	b.wants("import of May")
	b.run(chromedp.Click(`//a[text()="import of May"]`))
	b.wants("ImportRows")
	var tree string
	b.run(chromedp.Text(".tree", &tree))
	if !contains(compact(tree), "pictures running 0 of 1") {
		t.Errorf("the tree shows %q", compact(tree))
	}
	b.run(chromedp.Click(".tree a"))
	b.wants("When all were executed")

	b.open("/jobs/" + part.Jid)
	var graph string
	b.eval(`document.querySelector("#links svg").textContent`, &graph)
	if !contains(graph, "import of May") || !contains(graph, "this job") {
		t.Errorf("the graph shows %q", graph)
	}
	b.run(chromedp.Click(`#links a[href^="batches/"]`))
	b.wants("0 of 1 jobs are done")
	b.clean("batches")
}

// TestLinkedJobsAreAGraph follows the lines of the graph by clicks.
func TestLinkedJobsAreAGraph(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	before := pushJob(t, broker, `{"queue":"orders","type":"Charge"}`)
	middle := pushJob(t, broker, `{"queue":"orders","type":"Pick","after":[%q]}`, before)
	child := pushJob(t, broker, `{"queue":"orders","type":"Ship","parent":%q}`, middle)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/jobs/" + middle)
	b.run(chromedp.Click(fmt.Sprintf(`#links a[href="jobs/%s"]`, child)))
	b.arrives("/jobs/" + child)
	b.run(chromedp.Click(fmt.Sprintf(`#links a[href="jobs/%s"]`, middle)))
	b.arrives("/jobs/" + middle)
	b.run(chromedp.Click(fmt.Sprintf(`#links a[href="jobs/%s"]`, before)))
	b.arrives("/jobs/" + before)
	b.clean("links")
}

// TestCopiedCommandsSubmitTheJobAgain copies each command with its button and runs it.
func TestCopiedCommandsSubmitTheJobAgain(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman", "curl")
	broker := harness.Start(t, harness.Options{})
	id := pushJob(t, broker, `{"queue":"letters","type":"Send","args":["Ann's",{"n":1}]}`)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.run(cdbrowser.GrantPermissions([]cdbrowser.PermissionType{
		cdbrowser.PermissionTypeClipboardReadWrite, cdbrowser.PermissionTypeClipboardSanitizedWrite,
	}).WithOrigin(b.base).
		WithBrowserContextID(b.window))
	b.open("/jobs/" + id)
	b.run(chromedp.Click("//summary[text()='Submit it again from a terminal']"),
		chromedp.WaitVisible(".copyline button"))
	var labels []string
	b.eval(`[...document.querySelectorAll('.copyline .label')].map(l => l.textContent)`, &labels)
	if strings.Join(labels, " ") != "curl broker gearman faktory" {
		t.Fatalf("the page has commands for %q", labels)
	}
	for i, label := range labels {
		button := fmt.Sprintf(".copyline:nth-of-type(%d) button", i+1)
		b.eval(fmt.Sprintf(`(() => { // the button says so for a second
			const button = document.querySelector('%s');
			window.copied = '';
			new MutationObserver(() => { if (button.textContent === 'Copied') copied = button.dataset.copy; }).observe(button, { childList: true });
		})()`, button), nil)
		b.run(chromedp.Click(button))
		await(b, `copied !== ''`, true)
		var command string
		b.eval(`navigator.clipboard.readText()`, &command)
		// nc is not everywhere; bash can do as much.
		shell(t, broker, `nc() { exec 3<>"/dev/tcp/$1/$2"; cat >&3; cat <&3; }`+"\n"+command)
		if n := len(api(t, broker, "GET", "/jobs?queue=letters", "")["jobs"].([]any)); n != i+2 {
			t.Errorf("after the command for %s there are %d jobs: %s", label, n, command)
		}
	}
	b.clean("copies")
}
