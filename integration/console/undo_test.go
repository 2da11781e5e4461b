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

// TestARetryAndAPauseAreUndoneFromTheirNotes runs dead jobs again, undoes that beside the note, finds the jobs by the
// operation, and does the same with the pause of a queue.
func TestARetryAndAPauseAreUndoneFromTheirNotes(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	pushMany(t, broker, "mail", 7)
	shell(t, broker, "broker kill --queue mail --yes")
	b := openBrowser(t, "http://"+broker.HTTP)
	undo := chromedp.Click(`.notice form[action="undo"] button`)
	b.open("/jobs?queue=mail&state=dead")
	b.run(chromedp.Click("#select-matching"), chromedp.WaitEnabled(`.bar button[value="retry"]`),
		chromedp.Click(`.bar button[value="retry"]`))
	b.wants("This can be undone for an hour")
	b.run(chromedp.Click("main form section button"))
	if b.wantsDone("7 jobs put back.") {
		b.run(undo)
	} else { // the note of a slow change has no button
		b.open("/operations")
		b.run(chromedp.Click(`//tr[contains(., "jobs.retry")]//button[contains(., "Undo")]`))
	}
	b.wantsDone("Undone: 7 jobs put back.")
	if q := api(t, broker, "GET", "/queues/mail", ""); q["dead"] != 7.0 || q["ready"] != 0.0 {
		t.Errorf("after the undo: %v", q)
	}
	b.open("/operations")
	b.wants("undone by op-3")
	b.open("/jobs?operation=op-2&state=dead")
	b.wants("all 7 that match")
	b.open("/queues/mail")
	b.run(chromedp.Click(`button[value="pause"]`))
	b.wants("The queue is paused.")
	b.run(undo)
	b.wants("Undone.")
	if q := api(t, broker, "GET", "/queues/mail", ""); q["paused"] != false {
		t.Errorf("after the undo of the pause: %v", q)
	}
	b.open("/audit")
	b.wants("paused → not paused")
	b.clean("undo")
}
