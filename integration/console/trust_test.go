package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// startLarge starts a broker with 50,000 jobs and two kinds of failures of one type: 89 jobs that were killed and have
// no error class, and 40 that failed with a class. 1,400 more dead jobs are of other queues.
func startLarge(t *testing.T) *harness.Broker {
	t.Helper()
	b := harness.Start(t, harness.Options{})
	fill(t, b, 50_000, 100)
	pushMany(t, b, "etl.nightly", 89)
	for _, queue := range []string{"etl.nightly", "queue-0001", "queue-0002", "queue-0003"} {
		shell(t, b, "broker kill --queue "+queue+" --yes")
	}
	pushMany(t, b, "etl.nightly", 40)
	shell(t, b, `broker work etl.nightly --drain -j 8 -- sh -c 'echo "no answer" >&2; exit 1' || true`)
	return b
}

// pushMany submits jobs that die with their first failure.
func pushMany(t *testing.T, b *harness.Broker, queue string, n int) {
	t.Helper()
	job := fmt.Sprintf(`{"queue":%q,"max_fails":1},`, queue)
	api(t, b, "POST", "/jobs", `{"jobs":[`+strings.TrimSuffix(strings.Repeat(job, n), ",")+`]}`)
}

// TestAGroupOfFailuresActsOnExactlyItsJobs deletes the failures without an error class. Those of the same type with one
// stay.
func TestAGroupOfFailuresActsOnExactlyItsJobs(t *testing.T) {
	t.Parallel()
	broker := startLarge(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/dead")
	for _, want := range []string{
		"no error class", "exit status 1", "no answer", "1\u202f629", "1\u202f500", " min ago",
	} {
		b.wants(want)
	}
	row := `//tr[contains(., "no error class") and contains(., "etl.nightly")]`
	var text string
	b.run(chromedp.Text(row, &text))
	if !contains(compact(text), "89") {
		t.Errorf("the group shows %q", compact(text))
	}
	b.run(chromedp.Click(row + `//button[@value="delete"]`))
	b.wants("Delete 89 jobs?")
	b.run(chromedp.Click("main form button.danger"))
	b.wants("Delete 89 jobs in ")
	b.wants("1\u202f629")
	b.wantsInTime("1\u202f540")
	if n := countMatching(t, broker, `{"state":"dead","error_class":"exit status 1"}`); n != 40 {
		t.Errorf("%d jobs with the error class are left, want 40", n)
	}
	b.clean("groups of failures")
}

// TestCountsShowWhetherTheyAreExact looks at lists of which the broker knows the number, and at lists that it must
// search.
func TestCountsShowWhetherTheyAreExact(t *testing.T) {
	t.Parallel()
	broker := startLarge(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/dead?text=seldom")
	b.wants("No job matches the filter.")
	if b.lacks("No dead jobs") == "" {
		t.Error("a filter that matches nothing says that there are no dead jobs")
	}
	b.open("/dead?text=work")
	b.wants("50 so far, more may match")
	b.wants("all that match, counted in the next step")
	b.wants("of the 1\u202f000 newest")
	for _, wrong := range []string{"at least", "≥", "or more"} {
		if b.lacks(wrong) == "" {
			t.Errorf("the page says %q", wrong)
		}
	}
	b.open("/dead?queue=etl.nightly")
	b.wants("129")
	b.wants("all 129 that match")
	b.clean("numbers")
}

// countMatching counts the jobs of a filter of the API.
func countMatching(t *testing.T, broker *harness.Broker, filter string) int {
	t.Helper()
	n, ok := api(t, broker, "POST", "/job-actions",
		`{"action":"retry","filter":`+filter+`,"dry_run":true}`)["matched"].(float64)
	if !ok {
		t.Fatal("the answer has no count")
	}
	return int(n)
}

// TestASearchKeepsTheColumns chooses columns for one page. Neither a search, nor a link, nor another page changes them.
func TestASearchKeepsTheColumns(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	heads := func() (text []string) {
		b.eval(`[...document.querySelectorAll('table.jobs thead th:not(.box)')].map(th => th.textContent)`, &text)
		return text
	}
	wants := func(where, want string) {
		t.Helper()
		if got := strings.Join(heads(), " "); got != want {
			t.Errorf("%s: the columns are %s, want %s", where, got, want)
		}
	}
	search := func() {
		b.run(chromedp.SendKeys(`.search input[name="q"]`, "mail"), chromedp.Click(`//button[text()="Search"]`))
		b.wants("Clear")
	}
	b.open("/dead")
	usual := strings.Join(heads(), " ")
	search()
	b.open("/dead")
	wants("after a search", usual)
	b.open("/jobs")
	everywhere := strings.Join(heads(), " ")
	b.run(chromedp.Click(`//summary[contains(., "Columns")]`), chromedp.Click(`input[name="column"][value="priority"]`),
		chromedp.Click(`//button[text()="Show these"]`), chromedp.WaitVisible(`//th[text()="Priority"]`))
	b.arrives("/jobs?")
	search()
	wants("a search", everywhere+" Priority")
	b.open("/jobs?column=job&column=queue")
	wants("a link", "Job Queue")
	b.open("/jobs")
	wants("after the link", everywhere+" Priority")
	b.open("/dead")
	wants("another page", usual)
	b.clean("columns")
}

// TestALivePageAgesWithoutEvents shows how long ago a job was submitted. Nothing happens afterwards, and the page still
// ages.
func TestALivePageAgesWithoutEvents(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	b.open("/jobs?queue=emails&state=ready") // their ages change every second
	age := `document.querySelector('td.when time').textContent`
	var first string
	b.eval(age, &first)
	harness.Eventually(t, func() string {
		var now string
		b.eval(age, &now)
		if now == first {
			return "the job is still " + first
		}
		return ""
	})
	b.clean("a page without events")
}

// TestALostConnectionIsShownBesideTheState stops the broker below the overview.
func TestALostConnectionIsShownBesideTheState(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	b.open("/")
	b.wants("serving")
	b.wants("Live")
	broker.Crash()
	b.wants("Connection lost.")
	b.wants("serving as of ")
	b.wants("Offline")
	if b.lacks("Live") == "" {
		t.Error("the page says Live without a connection")
	}
	broker.Restart()
	harness.Eventually(t, func() string {
		if b.lacks("Offline") == "" || b.lacks("as of ") == "" {
			return "the page does not see that the connection is back"
		}
		return b.lacks("Live")
	})
}

// TestASearchSaysHowFarItGot looks for a text that no job has. A page that is held says how many jobs have been
// searched; without that the page goes on by itself until all are. How many pages there are depends on the speed of the
// machine.
func TestASearchSaysHowFarItGot(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	fill(t, broker, 200_000, 20)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/jobs?anywhere=seldom&hold=yes")
	b.wants(" of 200\u202f000 jobs searched so far.")
	b.open("/jobs?anywhere=seldom")
	found := func() bool { return b.lacks("searched so far") != "" && b.lacks("No job matches the filter.") == "" }
	for last := ""; !found(); { // each page has its time, however many there are
		harness.Eventually(t, func() string {
			var at string
			b.run(chromedp.Location(&at))
			if at == last && !found() {
				return "the search stands at " + at
			}
			last = at
			return ""
		})
	}
	b.clean("a search")
}
