package console

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"broker/integration/harness"
)

func TestQueuesAreOperated(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/queues/emails")
	b.run(chromedp.Click(`button[value="pause"]`))
	b.wants("The queue is paused.")
	if !strings.Contains(shell(t, broker, "broker queues emails"), "paused") {
		t.Error("the queue is not paused")
	}
	b.open("/jobs?queue=emails&state=ready")
	b.run(chromedp.Click("td.main a"))
	b.wants("The queue is paused (")
	b.open("/queues")
	b.run(chromedp.Click(`input[value="emails"]`), chromedp.WaitEnabled(`button[value="resume"]`),
		chromedp.Click(`button[value="resume"]`))
	b.wants("1 queue resumed.")
	b.open("/queues/emails")
	b.run(chromedp.SetValue(`input[name="normal"]`, "77"), chromedp.Click(`button[value="limit"]`))
	b.wants("The limits are set.")
	b.run(chromedp.Click("#edit summary"), chromedp.SetValue(`select[name="state"]`, "scheduled"),
		chromedp.SendKeys(`input[name="confirm"]`, "emails"),
		chromedp.Click(`button[value="clear"]`))
	b.wants("1 job removed.")
	b.run(chromedp.Click("#edit summary"), chromedp.SendKeys(`input[name="confirm"]`, "wrong"),
		chromedp.Click(`button[value="remove"]`))
	b.refused("type the name of the queue")
	b.open("/audit")
	b.wants("queue.pause")
	b.clean("queues")
}

func TestJobsAreChangedOneAndMany(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)

	b.open("/dead")
	b.wants("ImportRow")
	b.run(chromedp.Click(`td input[name="id"]`), chromedp.WaitEnabled(`.bar button[value="retry"]`),
		chromedp.Click(`.bar button[value="retry"]`))
	b.wantsDone("1 job put back.")
	b.wants("No dead jobs.")

	b.open("/jobs?queue=emails&state=ready")
	b.run(chromedp.Click("#select-all"), chromedp.WaitEnabled(`.bar button[value="priority"]`),
		chromedp.Click(`.bar button[value="priority"]`))
	b.wants("Change the priority of 5 jobs?")
	b.run(chromedp.SendKeys(`input[name="priority"]`, "7"), chromedp.Click("main form section button"))
	b.wantsDone("5 jobs changed.")
	b.open("/jobs?queue=emails&min_priority=7")
	b.wants("5")
	b.run(chromedp.Click("#select-matching"), chromedp.WaitEnabled(`.bar button[value="move"]`),
		chromedp.Click(`.bar button[value="move"]`))
	b.wants("Move 5 jobs?")
	b.run(chromedp.SendKeys(`input[name="queue"]`, "letters"), chromedp.Click("main form section button"))
	b.wantsDone("5 jobs moved.")

	shell(t, broker, "broker push reports x --retries 5 --type Report")
	lease := api(t, broker, "POST", "/queues/reports/lease", `{}`)["lease"].(string)
	api(t, broker, "POST", "/leases/"+lease+"/fail", `{"error_class":"NoPaper","retry_in_s":3600}`)
	b.open("/retrying")
	b.wants("NoPaper")
	var clicked bool // by a script, because the rows move when other jobs are due
	b.eval(`(() => {
		const row = [...document.querySelectorAll("tr")].find(row => row.textContent.includes("NoPaper"));
		const remove = row?.querySelector('button[value="delete"]');
		remove?.click();
		return remove != null;
	})()`, &clicked)
	if !clicked {
		t.Fatal("the failures by lack of paper have no button that deletes their jobs")
	}
	b.wants("Delete 1 job?")
	b.run(chromedp.Click("main form button.danger"))
	b.wants("Delete 1 job in ")
	b.clean("lists of jobs")
}

// TestManyJobsNeedTheirNumberTyped deletes more jobs than a slip should.
func TestManyJobsNeedTheirNumberTyped(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	shell(t, broker, `for b in 1 2; do (printf '{"jobs":['; for i in $(seq 599); do printf '{"queue":"bulk","args":[%s]},' $i; done; printf '{"queue":"bulk"}]}') |
		curl -sf -H 'Content-Type: application/json' -d @- "$BROKER_URL/api/v1/jobs" > /dev/null; done`)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/jobs?queue=bulk")
	b.wants("1\u202f200")
	b.run(chromedp.Click("#select-matching"), chromedp.WaitEnabled(`.bar button[value="delete"]`),
		chromedp.Click(`.bar button[value="delete"]`))
	b.wants("Delete 1\u202f200 jobs?")
	b.wants("Ten of 1\u202f200 jobs")
	b.run(chromedp.SendKeys(`input[name="typed"]`, "12"), chromedp.Click("main form button.danger"))
	b.wants("nothing was changed")
	b.run(chromedp.SendKeys(`input[name="typed"]`, "1200"), chromedp.Click("main form button.danger"))
	b.arrives("/jobs?queue=bulk")
	b.open("/operations")
	b.wants("jobs.delete")
	b.wants("queue=bulk")
	b.wants("0 of 1\u202f200")
	b.wantsInTime("1\u202f200 of 1\u202f200")
	b.clean("a large change")
}

func TestAJobIsEditedAndRunAgain(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/jobs/" + oneJob(t, b.base, "dead"))
	b.wants("TimeoutError")
	b.run(chromedp.Click("#edit summary"), chromedp.SetValue(`textarea[name="body"]`, `["corrected"]`),
		chromedp.SetValue(`input[name="tags"]`, "again, fixed"),
		chromedp.Click(`button[value="edit-run"]`))
	b.wants("The job is changed and ready.")
	b.wants("corrected")
	b.wants("is busy with jobs of other queues, or between two requests")
	for form, want := range map[string]string{"hex": "5b 22 63 6f", "text": `["corrected"]`} {
		b.run(chromedp.Click(`#body a[href*="body=` + form + `"]`))
		await(b, `new URLSearchParams(location.search).get('body') + ' ' + document.readyState`, form+" complete")
		b.wants(want)
	}
	b.open("/jobs/" + oneJob(t, b.base, "scheduled"))
	b.wants("It is due in")
	b.run(chromedp.Click(`.head button[value="retry"]`))
	b.wants("The job is ready.")
	b.run(chromedp.Click(`.head button[value="kill"]`))
	b.confirms("Kill the job ")
	b.wants("The job is in the dead set.")
	gone := oneJob(t, b.base, "dead")
	b.open("/jobs/" + gone)
	b.run(chromedp.Click(`.head button[value="delete"]`))
	b.confirms("Delete the job ")
	b.wants("Delete 1 job in ")
	b.clean("a job")
	b.wantsInTime("only this record of it is left")
}

// confirms answers the question whether a change is meant.
func (b *browser) confirms(question string) {
	b.t.Helper()
	b.wants(question)
	b.run(chromedp.Click("main form button.danger"))
}

// TestBrokenJSONIsNotSavedAsTextUnasked edits a job's arguments and makes a mistake.
func TestBrokenJSONIsNotSavedAsTextUnasked(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	id := oneJob(t, b.base, "scheduled")
	save := func(body string, more ...chromedp.Action) {
		b.run(chromedp.SetValue(`textarea[name="body"]`, body))
		b.run(append(more, chromedp.Click(`button[value="edit"]`))...)
	}
	b.open("/jobs/" + id)
	b.run(chromedp.Click("#edit summary"))
	save(`["late",`)
	b.refused("the body begins like JSON and is not valid")
	save("late")
	b.refused("the body was a JSON array of arguments and is not one now")
	if got := shell(t, broker,
		"broker job "+id+" -o json"); !strings.Contains(strings.Join(strings.Fields(got), ""), `"args":["late"]`) {
		t.Errorf("the job is changed: %s", got)
	}
	save("late", chromedp.Click(`input[name="as_text"]`))
	b.wants("The job is changed.")
	b.open("/submit")
	b.run(chromedp.SendKeys(`input[name="queue"]`, "mails"),
		chromedp.SendKeys(`textarea[name="body"]`, `{"to": "ann",`), chromedp.Click(`button[value="submit"]`))
	b.refused("the body begins like JSON and is not valid")
	var kept string
	b.run(chromedp.Value(`textarea[name="body"]`, &kept))
	if kept != `{"to": "ann",` {
		t.Errorf("the form keeps %q", kept)
	}
	b.run(chromedp.SetValue(`textarea[name="body"]`, `{"to": "ann"}`), chromedp.Click(`button[value="submit"]`))
	b.wants("The job is submitted.")
	b.clean("broken JSON")
}

// A job that waits under a unique key is found, or changed, by a form that says so.
func TestSubmissionWithAKnownKeyFindsOrChangesItsJob(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	id := strings.TrimSpace(shell(t, broker, `broker push index first --unique doc-7`))
	b := openBrowser(t, "http://"+broker.HTTP)
	submit := func(body, choice string) {
		t.Helper()
		b.open("/submit")
		b.run(chromedp.SendKeys(`input[name="queue"]`, "index"), chromedp.SendKeys(`textarea[name="body"]`, body),
			chromedp.SendKeys(`input[name="unique_key"]`, "doc-7"),
			chromedp.SetValue(`select[name="on_duplicate"]`, choice), chromedp.Click(`button[value="submit"]`))
	}
	submit("second", "")
	b.refused("key")
	for _, c := range []struct{ choice, note, body string }{
		{"coalesce", "it is submitted, or was before", "first"}, {"replace", "as it was typed", "changed"},
	} {
		submit("changed", c.choice)
		b.wants(c.note)
		b.wants(id)
		if got := shell(t, broker, "broker job "+id+" -o json"); !strings.Contains(got, `"body": "`+c.body+`"`) {
			t.Errorf("%s: %s", c.choice, got)
		}
	}
	b.clean("unique keys")
}

func TestJobsAreSubmitted(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/submit")
	b.run(chromedp.SendKeys(`input[name="queue"]`, "greetings"),
		chromedp.SendKeys(`textarea[name="body"]`, `["hello"]`),
		chromedp.SendKeys(`input[name="tags"]`, "a, b"), chromedp.Click(`button[value="submit"]`))
	b.wants("The job is submitted.")
	b.wants("hello")
	b.open("/submit")
	b.run(chromedp.SendKeys(`input[name="queue"]`, "echo"), chromedp.SendKeys(`textarea[name="body"]`, "ping"),
		chromedp.Click(`button[value="wait"]`))
	shell(t, broker, `broker work echo --count 1 -- sh -c 'echo pong' || broker work echo --drain -- sh -c 'echo pong'`)
	b.wants("pong")
	b.clean("submissions")
}

func TestSchedulesAreMadeAndChanged(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/schedules")
	b.run(chromedp.Click("#edit summary"), chromedp.SendKeys(`input[name="name"]`, "nightly"),
		chromedp.SendKeys(`input[name="cron"]`, "99 * * * *"),
		chromedp.SendKeys(`form input[name="queue"]`, "reports"), chromedp.SendKeys(`textarea[name="body"]`, `["all"]`),
		chromedp.Click(`button[value="create"]`))
	b.refused("end of range (99)")
	b.run(chromedp.SetValue(`input[name="cron"]`, "0 4 * * *"), chromedp.Click(`button[value="create"]`))
	b.wants("The schedule nightly is created.")
	b.run(chromedp.Click(`button[value="pause"]`))
	b.wants("The schedule nightly is paused.")
	b.run(chromedp.Click(`button[value="run"]`))
	b.wants("A job of nightly is submitted")
	b.run(chromedp.Click(`a[href*="edit=nightly"]`))
	b.wants("Change nightly")
	b.run(chromedp.SetValue(`input[name="cron"]`, "30 5 * * *"), chromedp.Click(`button[value="change"]`))
	b.wants("30 5 * * *")
	if got := shell(t, broker, "broker schedules"); !strings.Contains(got, "30 5 * * *") {
		t.Errorf("broker schedules prints %s", got)
	}
	b.run(chromedp.Click(`button[value="remove"]`))
	b.confirms("Remove the schedule nightly?")
	b.wants("No schedules.")
	b.clean("schedules")
}

func TestLimitsAreSetAndRemoved(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/limits")
	b.run(chromedp.Click("#edit summary"), chromedp.SendKeys(`form.fields input[name="queue"]`, "emails"),
		chromedp.SetValue(`input[name="concurrency"]`, "2"),
		chromedp.Click(`button[value="set"]`))
	b.wants("The limit is set.")
	b.wants("the whole queue")
	b.run(chromedp.Click(`button[value="remove"]`))
	b.confirms("Remove a limit of emails?")
	b.wants("No limits")
	b.clean("limits")
}

func TestStorageIsCheckedAndBackedUp(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/storage")
	b.run(chromedp.Click(`button[value="check"]`))
	b.wants("The check has begun.")
	b.wantsInTime("Everything is as it was written.")
	dir := t.TempDir() + "/copy"
	b.run(chromedp.SetValue(`input[name="dir"]`, "relative"), chromedp.Click(`button[value="backup"]`))
	b.refused("absolute path")
	b.run(chromedp.SetValue(`input[name="dir"]`, dir), chromedp.Click(`button[value="backup"]`))
	b.wantsDone("The backup is in " + dir)
	if got := shell(t, broker, "broker doctor --data "+dir+" 2>&1 || true"); got == "" {
		t.Error("the backup is not a store")
	}
	b.clean("storage")
}

func TestWorkersAreDisconnected(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/workers?protocol=gearman")
	b.wants("resize")
	b.run(chromedp.Click(`button[value="disconnect"]`))
	b.wants("The jobs that it holds by this connection are handed out again.")
	b.run(chromedp.Click(`//a[@role="button" and text()="Back"]`))
	b.wants("resize")
	b.run(chromedp.Click(`button[value="disconnect"]`))
	b.confirms("Disconnect ")
	b.wants("The connection is closed.")
	b.open("/workers?protocol=gearman")
	b.wants("Nobody is connected over Gearman.")
	b.clean("workers")
}

// TestMainPathsWorkByKeyboard goes the main paths without a pointer.
func TestMainPathsWorkByKeyboard(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/")
	var focused string
	b.run(chromedp.KeyEvent(kb.Tab))
	b.eval(`document.activeElement.textContent`, &focused)
	if focused != "Skip to content" {
		t.Errorf("the first stop is %q", focused)
	}
	b.run(chromedp.KeyEvent("/"))
	b.eval(`document.querySelector('[data-jump]:focus').value = ''`,
		nil) // the slash of a real keyboard does not get there
	b.run(chromedp.KeyEvent("emails"), chromedp.KeyEvent(kb.Enter))
	b.wants("Running and next jobs")
	b.open("/jobs?state=dead")
	b.run(focus(`td input[name="id"]`), chromedp.KeyEvent(" "),
		chromedp.WaitEnabled(`.bar button[value="retry"]`),
		focus(`.bar button[value="retry"]`), chromedp.KeyEvent(kb.Enter))
	b.wantsDone("1 job put back.")
	b.open("/jobs?queue=emails")
	b.run(focus("#save-filter summary"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible("#filter-name"),
		focus("#filter-name"),
		chromedp.KeyEvent("my mails"), chromedp.KeyEvent(kb.Enter))
	b.wants("my mails")
	b.open("/jobs")
	b.run(focus("#saved-filters a"), chromedp.KeyEvent(kb.Enter))
	b.wants("queue emails")
	b.clean("the keyboard")
}

// TestColumnsAreChosen chooses columns, which the browser keeps for the next time.
func TestColumnsAreChosen(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	heads := func() (text []string) {
		b.eval(`[...document.querySelectorAll('thead th:not(.box)')].map(th => th.textContent)`, &text)
		return text
	}
	b.open("/jobs")
	b.run(chromedp.Click(`//summary[contains(., "Columns")]`), chromedp.Click(`input[name="column"][value="tries"]`),
		chromedp.Click(`input[name="column"][value="priority"]`),
		chromedp.Click(`//button[text()="Show these"]`), chromedp.WaitVisible(`//th[text()="Priority"]`))
	b.open("/jobs?queue=emails")
	if got := strings.Join(heads(), " "); got != "Job State Queue Updated Note Priority" {
		t.Errorf("the columns are %s", got)
	}
	b.clean("columns")
}

// TestPageOfAJobShowsThatTheJobIsGone removes a job below a live page of it.
func TestPageOfAJobShowsThatTheJobIsGone(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	id := oneJob(t, b.base, "scheduled")
	b.open("/jobs/" + id)
	b.wants("It is due in")
	shell(t, broker, "broker rm "+id)
	b.wants("only this record of it is left")
}

func TestFilterErrorsNameTheField(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	for query, want := range map[string]string{
		"created_from=yesterday": "created from", "min_priority=high": "priority from", "state=asleep": "state",
		"origin=smtp": "submitted by", "sort=queue&state=dead": "sort",
	} {
		b.open("/jobs?" + query)
		var text string
		b.run(chromedp.Text("main .notice.bad", &text, chromedp.ByQuery, chromedp.NodeVisible))
		if !strings.Contains(text, want) {
			t.Errorf("for %s the page says %q", query, text)
		}
	}
}
