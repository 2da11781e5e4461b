package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// cancelButton is the button of the notice that shows the progress of a change.
const cancelButton = `main > .notice form[action="operations"] button[value="cancel"]`

// TestALargeChangeIsCancelledFromItsNotice moves many jobs and cancels that from the page that shows the progress. A
// fast machine may have moved all of them before the click: then the test repeats with more jobs.
func TestALargeChangeIsCancelledFromItsNotice(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	b := openBrowser(t, "http://"+broker.HTTP)
	jobs, state := 300_000, "done"
	for ; state == "done"; jobs *= 2 {
		if jobs > 2_000_000 {
			t.Fatal("two million jobs are moved before the change can be cancelled")
		}
		fill(t, broker, jobs, 1)
		state = b.moveAndCancel(broker, jobs)
	}
	jobs /= 2
	if state != "cancelled" {
		t.Fatalf("the operation is %s", state)
	}
	moved := countJobs(t, broker, "elsewhere-"+fmt.Sprint(jobs))
	if left := countJobs(t, broker, "queue-0000"); moved == 0 || left == 0 || moved+left != jobs {
		t.Errorf("of %d jobs %d are moved and %d left", jobs, moved, left)
	}
	var row string
	b.run(chromedp.Navigate(b.base+"/operations"), chromedp.Text("tbody tr", &row, chromedp.ByQuery))
	if want := fmt.Sprintf("cancelled %s of %s", grouped(moved), grouped(jobs)); !contains(compact(row), want) {
		t.Errorf("the list of operations shows %q, want %q", compact(row), want)
	}
	var buttons int
	b.eval(fmt.Sprintf(`document.querySelectorAll('%s, td.acts button').length`, cancelButton), &buttons)
	if buttons > 0 {
		t.Errorf("%d buttons cancel what has ended", buttons)
	}
	b.clean("a cancelled change")
}

// moveAndCancel moves all jobs of a queue and cancels that. It returns the state in which the operation ends.
func (b *browser) moveAndCancel(broker *harness.Broker, jobs int) string {
	b.t.Helper()
	b.open("/jobs?queue=queue-0000")
	b.run(chromedp.Click("#select-matching"), chromedp.WaitEnabled(`.bar button[value="move"]`),
		chromedp.Click(`.bar button[value="move"]`),
		chromedp.WaitVisible(`input[name="typed"]`),
		chromedp.SendKeys(`main input[name="queue"]`, "elsewhere-"+fmt.Sprint(jobs)),
		chromedp.SendKeys(`input[name="typed"]`, fmt.Sprint(jobs)), chromedp.Click("main form section button"))
	b.arrives("/jobs?queue=queue-0000")
	var clicked bool
	b.eval(fmt.Sprintf(
		`(() => { const cancel = document.querySelector('%s'); cancel?.click(); return cancel !== null; })()`,
		cancelButton), &clicked)
	if clicked {
		b.arrives("/operations")
		b.wants("The operation ends after its present step.")
	}
	var state string
	harness.Eventually(b.t, func() string {
		list := api(b.t, broker, "GET", "/operations", "")["operations"].([]any)
		state = fmt.Sprint(list[0].(map[string]any)["state"])
		if state == "running" {
			return "the operation is running"
		}
		return ""
	})
	return state
}

// countJobs counts the jobs of a queue; it may be absent.
func countJobs(t *testing.T, broker *harness.Broker, queue string) int {
	t.Helper()
	n, ok := api(t, broker, "POST", "/job-actions",
		fmt.Sprintf(`{"action":"retry","filter":{"queue":[%q]},"dry_run":true}`, queue))["matched"].(float64)
	if !ok {
		t.Fatal("the answer has no count")
	}
	return int(n)
}

// grouped writes a number as pages show it, with spaces that do not break made plain.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// TestOverlongJobsAreMarked lets a job run longer than others of its queue have. A queue that has finished too few jobs
// marks none, however long they run.
func TestOverlongJobsAreMarked(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	lease := func(queue string) map[string]any {
		t.Helper()
		pushJob(t, broker, `{"queue":%q}`, queue)
		return api(t, broker, "POST", "/queues/"+queue+"/lease", "")
	}
	runs := map[string]int{"often": 20, "seldom": 19}
	held := map[string]string{}
	for queue, n := range runs {
		for range n {
			api(t, broker, "POST", fmt.Sprintf("/leases/%s/complete", lease(queue)["lease"]), "{}")
		}
	}
	for queue := range runs {
		held[queue] = lease(queue)["job"].(map[string]any)["id"].(string)
	}
	b := openBrowser(t, "http://"+broker.HTTP)
	for _, page := range []string{"/running", "/jobs?state=leased"} {
		var marked []string
		harness.Eventually(t, func() string {
			b.open(page)
			b.eval(`[...document.querySelectorAll('tr.slow input[name="id"]')].map((box) => box.value)`, &marked)
			if len(marked) == 0 {
				return "no job is marked"
			}
			return ""
		})
		if len(marked) != 1 || marked[0] != held["often"] {
			t.Errorf("on %s the jobs %s are marked, want %s", page, strings.Join(marked, ", "), held["often"])
		}
		var title string
		b.eval(`document.querySelector('tr.slow').title`, &title)
		if !contains(title, "more than twice as long as 95 %") {
			t.Errorf("the mark says %q", title)
		}
	}
	b.clean("marks")
}
