package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/operate/service"
)

func TestMessagesOfOneKindAreTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ message, want string }{
		{"job 4711 at 10.0.3.7:5432 refused", "job # at # refused"},
		{"no user ann.smith+x@example.com", "no user #"},
		{"order 5b1d9e37-6145-41a6-80c3-76ce37c86a42 is gone", "order # is gone"},
		{"dial tcp [::1]:6379: connection refused", "dial tcp #: connection refused"},
		{"at 0xc0001a2b3c in token eyJhbGciOiJIUzI1NiJ9", "at # in token #"},
		{"exit status 1\nmore lines", "exit status #"},
		{"took 1,204.5 s at 12:30:01", "took # s at #"},
		{"the database did not answer", "the database did not answer"},
	} {
		if got := normalise(c.message); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.message, got, c.want)
		}
	}
}

func TestCommonestMessagesOfAGroupAreShown(t *testing.T) {
	t.Parallel()
	var jobs []service.Job
	for i := range 9 {
		text := []string{"timeout after %d ms", "timeout after %d ms", "refused by 10.0.0.%d"}[i%3]
		jobs = append(jobs,
			service.Job{Type: "Mail", FailureGroup: "E", Failure: &service.Failure{Message: fmt.Sprintf(text, i)}})
	}
	got := fmt.Sprint(messagesOf(jobs)[groupKey{"E", "Mail"}])
	if want := "[{timeout after # ms 6} {refused by # 3}]"; got != want {
		t.Errorf("the messages are %s, want %s", got, want)
	}
}

func TestGroupsOfFailuresSayWhenTheyBegan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.dies("OldError", "no room on disk 3")
	f.advance(30 * time.Hour)
	f.dies("OldError", "no room on disk 4")
	f.dies("NewError", "refused by 10.0.0.7:25")
	f.advance(2 * time.Hour)
	page := f.get("/dead")
	row := func(class string) string {
		_, after, _ := strings.Cut(page, ">"+class+"</a>")
		text, _, _ := strings.Cut(after, "</tr>")
		return text
	}
	f.wants(row("OldError"), "2 × no room on disk #")
	f.wants(row("OldError"), "first <time")
	f.wants(row("OldError"), "1 d 08 h ago")
	f.wants(row("NewError"), "1 × refused by #")
	f.wants(row("NewError"), ">new</span>")
	f.wants(row("NewError"), `<svg class="spark bad"`)
	if strings.Contains(row("OldError"), ">new</span>") {
		t.Error("a group that began yesterday is marked as new")
	}
}

// TestDeathsOfEachHourAreExact has a class with one peak and a flat one, more jobs together than a page can read.
func TestDeathsOfEachHourAreExact(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.advance(30 * time.Minute)
	flat, peak := make([]int, 24), make([]int, 24)
	f.dies("Flat", "too old to be counted")
	f.dies("Peak", "too old to be counted")
	f.advance(12 * time.Hour)
	for hour := range 24 {
		f.advance(time.Hour)
		flat[hour] = 5
		if hour == 7 {
			peak[hour] = 700
		}
		for range flat[hour] {
			f.dies("Flat", "slow")
		}
		for range peak[hour] {
			f.dies("Peak", "database is down")
		}
	}
	dead, page := service.JobFilter{States: []string{"dead"}}, service.JobPage{Limit: 1000, Failures: 9}
	list, err := f.service.Jobs(t.Context(), f.caller, dead, page)
	if err != nil {
		t.Fatal(err)
	}
	last := f.clock.Now().Time().Truncate(time.Hour)
	start := last.Add(-36 * time.Hour)
	peakEnd := last.Add(-16 * time.Hour)
	want := []service.FailureCount{
		{Group: "Peak", Type: "mail", Jobs: 701, Died: peak, FirstHour: &start, LastHour: &peakEnd},
		{Group: "Flat", Type: "mail", Jobs: 121, Died: flat, FirstHour: &start, LastHour: &last},
	}
	if got := fmt.Sprint(list.Failures); got != fmt.Sprint(want) {
		t.Errorf("counted %s, want %v", got, want)
	}
	first := f.get("/dead")
	f.wants(first, string(deathLine(flat)))
	f.wants(first, string(deathLine(peak)))
	f.wants(f.get("/dead?failure_group=Flat&type=mail"), string(deathLine(flat)))
	if again := f.get("/dead"); strings.Count(again, string(deathLine(flat))) != 1 {
		t.Error("a reload shows another line")
	}

	peaks, err := f.service.Jobs(t.Context(), f.caller, service.JobFilter{FailureGroup: "Peak"}, page)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range peaks.Jobs {
		remove := service.Action{Action: service.ActionDelete}
		if err := f.service.Act(t.Context(), f.caller, j.ID, remove, nil); err != nil {
			t.Fatal(err)
		}
	}
	list, err = f.service.Jobs(t.Context(), f.caller, dead, page)
	if got := fmt.Sprint(list.Failures); err != nil || got != fmt.Sprint(want[1:]) {
		t.Errorf("after the removal of a class: counted %s, %v", got, err)
	}
}

func TestAllGroupsCanBeShown(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for i := range 14 {
		for range 15 - i {
			f.dies(fmt.Sprint("Error", i), "no")
		}
	}
	page := f.get("/dead")
	f.wants(page, "the 12 newest")
	f.wants(f.get("/dead?classes=largest"), "the 12 largest")
	_, link, _ := strings.Cut(page, `<a href="dead?groups=all`)
	if link == "" || strings.Contains(page, ">Error13</a>") {
		t.Fatal("the page has no link to all groups, or shows all of them")
	}
	f.wants(f.get("/dead?groups=all"), ">Error13</a>")
}
