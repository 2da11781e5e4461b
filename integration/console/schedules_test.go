package console

import (
	"strings"
	"testing"

	"broker/integration/harness"
)

// TestStripOfAScheduleShowsOutcomesOfRuns: in the list and on the schedule's page, live and after a restart.
func TestStripOfAScheduleShowsOutcomesOfRuns(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	for _, line := range []string{
		`broker schedules add nightly reports '["all"]' --cron '0 3 1 1 *' --type Report --retries 0`,
		`broker schedules run nightly && broker work reports --drain -- true`,
		`broker schedules run nightly && broker work reports --drain -- sh -c 'echo "TimeoutError: no answer" >&2; exit 1' || true`,
		`broker schedules run nightly`,
	} {
		shell(t, broker, line)
	}
	b := openBrowser(t, "http://"+broker.HTTP)
	marks := func() (text string) {
		b.eval(`[...document.querySelectorAll('.runs .run')].map((e) => e.textContent).join('')`, &text)
		return text
	}
	b.open("/schedules")
	if got := marks(); got != "✓✗…" {
		t.Errorf("the strip is %s", got)
	}
	broker.Crash()
	broker.Restart()
	b.open("/schedules/nightly")
	b.wants("Last runs")
	b.wants("by hand")
	if got := marks(); got != "✓✗…" {
		t.Errorf("after a restart the strip is %s", got)
	}
	var at string
	b.eval(`document.querySelectorAll('.runs a.run')[1].click(); 'x'`, &at)
	b.wants("TimeoutError")
	b.wants("nightly") // the job names its schedule
	b.clean("schedules")
	if got := shell(t, broker, "broker schedules"); !strings.Contains(got, "✓✗…") {
		t.Errorf("broker schedules shows %s", got)
	}
}
