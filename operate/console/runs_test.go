package console

import (
	"strings"
	"testing"
	"time"

	"broker/operate/service"
)

// TestStripOfAScheduleShowsOutcomesOfRuns: in time and late, done and failed, missed and asked for.
func TestStripOfAScheduleShowsOutcomesOfRuns(t *testing.T) {
	t.Parallel()
	at := func(s int) *time.Time {
		x := time.Date(2030, 1, 1, 3, 0, s, 0, time.UTC)
		return &x
	}
	list := service.Schedule{Recent: []service.ScheduleRun{
		{DueAt: at(0), At: at(0), Result: "submitted", Job: "seq:1", StartedAt: at(1), EndedAt: at(4), Outcome: "done"},
		{
			DueAt: at(0), At: at(20), Result: "submitted", Job: "seq:2", StartedAt: at(21), EndedAt: at(22),
			Outcome: "dead",
		},
		{DueAt: at(0), At: at(30), Result: "missed"},
		{DueAt: at(0), At: at(30), Result: "refused"},
		{At: at(40), Result: "submitted", Job: "seq:3"},
	}}
	want := []struct{ mark, summary string }{
		{"✓", "2030-01-01 03:00:00 UTC: done after 3 s"},
		{"✗", "2030-01-01 03:00:00 UTC: dead after 1 s, 20 s late"},
		{"–", "2030-01-01 03:00:00 UTC: missed: the broker was not running"},
		{"!", "2030-01-01 03:00:00 UTC: the job was refused"},
		{"…", "run by hand at 2030-01-01 03:00:40 UTC: not ended yet"},
	}
	for i, m := range runMarks(list, 12) {
		if m.Mark != want[i].mark || m.Summary != want[i].summary {
			t.Errorf("run %d is shown as %s, %q; want %s, %q", i, m.Mark, m.Summary, want[i].mark, want[i].summary)
		}
	}
	if last := runMarks(list, 2); len(last) != 2 || !strings.Contains(last[1].Summary, "by hand") {
		t.Errorf("the last two runs are %+v", last)
	}
}
