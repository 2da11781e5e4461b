package console

import (
	"testing"

	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// TestADeletionCanBeUndone deletes jobs, goes to another page, and undoes the deletion there. A restart undoes one too,
// and says so.
func TestADeletionCanBeUndone(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	pushMany(t, broker, "mail", 7)
	b := openBrowser(t, "http://"+broker.HTTP)
	remove := func() {
		t.Helper()
		b.open("/jobs?queue=mail")
		b.run(chromedp.Click("#select-matching"), chromedp.WaitEnabled(`.bar button[value="delete"]`),
			chromedp.Click(`.bar button[value="delete"]`))
		b.wants("Delete 7 jobs?")
		b.wants("until then this can be undone")
		b.run(chromedp.Click("main form button.danger"))
		b.arrives("/jobs?queue=mail")
		b.wants("Delete 7 jobs in ")
	}
	remove()
	b.open("/workers")
	b.wants("Delete 7 jobs in ")
	b.run(chromedp.Click(`button[aria-label="Undo: Delete 7 jobs"]`))
	b.arrives("/workers")
	b.wants("Undone: nothing was changed.")
	if b.lacks("Delete 7 jobs") == "" {
		t.Error("the notice is still there after the undo")
	}
	remove()
	b.clean("a deletion that is undone")
	b.run(chromedp.Navigate("about:blank")) // a page would note that it lost the connection
	broker.Crash()
	broker.Restart()
	b.open("/operations")
	b.wants("the broker stopped before it began; nothing was changed")
	b.wants("interrupted")
	if n := countJobs(t, broker, "mail"); n != 7 {
		t.Errorf("%d jobs are left, want 7", n)
	}
	b.clean("a deletion that a restart undid")
}
