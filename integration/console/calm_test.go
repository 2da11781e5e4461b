package console

import (
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// TestRunsOfAScheduleArePredictedWhileTyped types a schedule for the Sundays of March: the last of them is the day on
// which summer time begins in Berlin. A mistake is told in the words of the API.
func TestRunsOfAScheduleArePredictedWhileTyped(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/schedules")
	b.run(chromedp.Click("#edit summary"), chromedp.SendKeys(`input[name="cron"]`, "0 12 * 3 0"))
	b.wants("12:00:00 UTC")
	zone := `#edit input[name="zone"]`
	b.run(chromedp.SendKeys(zone, "Europe/Berlin"))
	b.wants("12:00:00 CEST")
	var runs []string
	b.eval(`[...document.querySelectorAll('#runs li')].map((e) => e.textContent)`, &runs)
	if all := strings.Join(runs, "\n"); len(runs) != 5 || strings.Count(all, "Sun ") != 5 ||
		!strings.Contains(all, "12:00:00 CET\n") {
		t.Errorf("the next runs are\n%s", all)
	}
	b.eval(`document.querySelector('#edit input[name="cron"]').value = ''`, nil)
	b.run(chromedp.SendKeys(`#edit input[name="cron"]`, "99 * * * *"))
	b.wants("end of range (99)")
	b.clean("the runs of a schedule")
}

// TestRowsStandStillUnderPointerAndFocus rests the pointer, and then the focus, on a row of a live list that other rows
// would push away. The row stays where it is and shows its own changes; a button says how many are new, and takes them.
func TestRowsStandStillUnderPointerAndFocus(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	place := func() (x, y float64) {
		var at struct{ X, Y float64 }
		b.eval(`(() => { const r = document.querySelector('a.name[href="queues/imports"]').getBoundingClientRect(); return { X: r.x + r.width / 2, Y: r.y + r.height / 2 }; })()`,
			&at)
		return at.X, at.Y
	}
	stands := func(y float64, row string) {
		t.Helper()
		if _, now := place(); now != y {
			t.Errorf("the row of imports has moved from %v to %v", y, now)
		}
		b.wants(row)
	}
	b.open("/queues?sort=name")
	x, y := place()
	b.run(chromedp.MouseEvent(input.MouseMoved, x, y))
	shell(t, broker, "for q in alpha amber apple; do broker push $q x; done; broker push imports row")
	b.wants("3 new")
	stands(y, "imports")
	// its own change
	await(b, `document.querySelector('a.name[href="queues/imports"]').closest('tr').querySelector('[data-label="Ready"]').innerText`,
		"1")
	stands(y, "imports")
	b.run(chromedp.Click("[data-take]"))
	b.wants("amber")
	if _, now := place(); now <= y {
		t.Error("the new rows are taken, and the row is where it was")
	}
	b.run(chromedp.MouseEvent(input.MouseMoved, 1, 1), focus(`a.name[href="queues/imports"]`))
	_, y = place()
	shell(t, broker, "broker push array x")
	b.wants("1 new")
	stands(y, "imports")
	b.eval(`document.activeElement.blur()`, nil)
	b.wants("array") // without a click
	b.run(chromedp.WaitNotVisible("[data-take]"))
	b.clean("rows that stand still")
}

// TestFocusSurvivesARefresh focuses a field, a link of a row and a button, and lets the page renew itself below each.
func TestFocusSurvivesARefresh(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	b.open("/queues?sort=-ready")
	for i, what := range []string{`a.name[href="queues/imports"]`, `button[name="theme"]`, `thead a[href*="sort"]`} {
		b.run(focus(what))
		b.afterChange(func() { fill(t, broker, 100, 3+i) }) // other rows, in another order
		var kept bool
		b.eval(`document.activeElement === document.querySelector('`+what+`')`, &kept)
		if !kept {
			t.Errorf("the focus has left %s", what)
		}
	}
	b.clean("the focus")
}

// TestTimesAreShownAsTheUserChooses reads an age, and the clock in UTC and in the zone of the browser, also after a
// refresh and on other pages.
func TestTimesAreShownAsTheUserChooses(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	b.run(emulation.SetTimezoneOverride("Australia/Adelaide")) // half an hour off the full hours of UTC, all year
	b.open("/jobs?queue=emails")
	shown := func(where, pattern string) string {
		t.Helper()
		var text string
		b.eval(`document.querySelector('main `+where+`').textContent`, &text)
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("the page shows %q, want %s", text, pattern)
		}
		return text
	}
	choose := func(value string) {
		b.eval(`(() => { const s = document.querySelector('[data-times] select'); s.value = '`+value+`'; s.dispatchEvent(new Event('change', { bubbles: true })); })()`,
			nil)
	}
	const clock = `^(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d$`
	shown("td.when time", "^in | ago$")
	choose("utc")
	utc := shown("td.when time", clock)
	choose("local")
	local := shown("td.when time", clock)
	if utc[len(utc)-5:] == local[len(local)-5:] {
		t.Errorf("the clock is %s in UTC and %s in Adelaide", utc, local)
	}
	for range 2 {
		b.afterChange(func() { shell(t, broker, "broker push other x") })
	}
	if again := shown("td.when time", clock); again != local {
		t.Errorf("after a refresh the page shows %s", again)
	}
	b.open("/audit")
	b.wants("Times are Australia/Adelaide.")
	choose("ages")
	b.wants("Times are UTC.")
	b.open("/jobs?queue=emails")
	shown("td.when time", "^in | ago$")
	b.clean("times")
}

// TestMistakesAreToldWhileTyped types mistakes into each kind of form. The page shows the words with which the API
// refuses the same, and nothing once the mistake is corrected.
func TestMistakesAreToldWhileTyped(t *testing.T) {
	t.Parallel()
	broker := startBusy(t)
	b := openBrowser(t, "http://"+broker.HTTP)
	for _, c := range []struct{ page, open, field, wrong, right, words string }{
		{"/jobs", "", `.search input[name="q"]`, "state:asleep", "state:dead", `"asleep" is not one of scheduled`},
		{"/jobs", "", `.search input[name="q"]`, "died:yesterday", "died:1h", `"yesterday" is not a time such as`},
		{"/queues/emails", "", `input[name="rate"]`, "fast", "2", "rate_per_s must be a number a second"},
		{"/queues/emails", "#policy summary", `#policy input[name="lease_for"]`, "long", "90s", `"long" is not a time such as 90s`},
		{"/limits", "#edit summary", `#edit input[name="rate"]`, "fast", "2", "rate_per_s must be a number a second"},
		{"/submit", "", `input[name="cost"]`, "-1", "2", "is not a number of 0 or more"},
		{"/schedules", "#edit summary", `#edit input[name="cron"]`, "99 * * * *", "0 4 * * *", "end of range (99)"},
	} {
		b.open(c.page)
		if c.open != "" {
			b.run(chromedp.Click(c.open), chromedp.WaitVisible(c.field))
		}
		b.run(chromedp.SendKeys(c.field, c.wrong))
		b.wants(c.words)
		b.eval(`document.querySelector('`+c.field+`').value = ''`, nil)
		b.run(chromedp.SendKeys(c.field, c.right))
		harness.Eventually(t, func() string {
			if b.lacks(c.words) == "" {
				return c.page + " still says " + c.words
			}
			return ""
		})
	}
	b.clean("mistakes")
}
