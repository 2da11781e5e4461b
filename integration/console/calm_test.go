package console

import (
	"strings"
	"testing"

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
