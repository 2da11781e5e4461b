package console

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"broker/operate/service"
)

func TestQuestionsNameTheJob(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id := f.submits(service.Submission{Queue: "q", Type: "Mail"})
	f.leases("q")
	f.wants(f.post("/jobs/"+id, url.Values{"do": {"stop"}}), "Stop the job Mail "+id+"?")
}

func TestStoppedJobIsNotShownAsDone(t *testing.T) {
	t.Parallel()
	f := setup(t)
	kept := 3600.0
	id := f.submits(service.Submission{Queue: "q", RetainForS: &kept})
	lease := f.leases("q")
	stop := service.Action{Action: service.ActionCancel, Running: service.RunningSignal}
	if err := f.service.Act(t.Context(), f.caller, id, stop, nil); err != nil {
		t.Fatal(err)
	}
	failure := service.FailOptions{Message: "stopped half-way"}
	if err := f.service.Fail(t.Context(), f.caller, lease.Token, failure); err != nil {
		t.Fatal(err)
	}
	page := f.get("/jobs/" + id)
	f.wants(page, `<span class="state state-cancelled">cancelled</span>`, "stopped half-way",
		`<strong>Cancelled</strong> <span class="muted">stopped half-way`)
	list := f.get("/jobs?state=done")
	f.wants(list, `<span class="state state-cancelled">cancelled</span>`, "stopped half-way")
	if strings.Contains(page+list, `state-failed`) || strings.Contains(page, `state-done`) {
		t.Error("a stopped job is shown as failed or done")
	}
	j, err := f.service.Job(t.Context(), f.caller, id)
	if err != nil || j.Outcome == nil || j.Outcome.Cause != "cancelled" ||
		j.Outcome.Failure.Message != "stopped half-way" {
		t.Errorf("the API has %+v, %v", j.Outcome, err)
	}
	if end := j.Timeline[len(j.Timeline)-1]; end.Kind != "cancelled" || end.Text != "stopped half-way" {
		t.Errorf("the timeline ends with %+v", end)
	}
}

// TestJobPutBackIntoTheDeadSetIsWhatItWas: dead jobs are run by mistake, found again, and killed.
func TestJobPutBackIntoTheDeadSetIsWhatItWas(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.dies("Timeout", "no answer")
	f.dies("Timeout", "no answer")
	died := func(id string) service.Job {
		t.Helper()
		j, err := f.service.Job(t.Context(), f.caller, id)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	before := died("seq:1")
	f.advance(time.Hour)
	all := service.Selection{Filter: &service.JobFilter{Queues: []string{"mail"}}}
	for _, action := range []service.JobAction{service.ActionRetry, service.ActionKill} {
		op, err := f.service.StartAction(t.Context(), f.caller, service.Action{Action: action}, all)
		if err == nil {
			op, err = f.service.WaitOperation(t.Context(), f.caller, op.ID, time.Minute)
		}
		if err != nil || op.Changed != 2 {
			t.Fatal(op, err)
		}
	}
	for _, id := range []string{"seq:1", "seq:2"} {
		if after := died(id); after.FailureGroup != "Timeout" || !after.DiedAt.Equal(*before.DiedAt) {
			t.Errorf("%s is dead since %v of the class %q, want %v", id, after.DiedAt, after.FailureGroup, before.DiedAt)
		}
	}
	retry := service.Action{Action: service.ActionRetry}
	if err := f.service.Act(t.Context(), f.caller, "seq:1", retry, nil); err != nil {
		t.Fatal(err)
	}
	f.leases("mail")
	kill := service.Action{Action: service.ActionKill}
	if err := f.service.Act(t.Context(), f.caller, "seq:1", kill, nil); err != nil {
		t.Fatal(err)
	}
	if after := died("seq:1"); after.FailureGroup != "Timeout" || after.DiedAt.Equal(*before.DiedAt) {
		t.Errorf("a job that ran since is dead since %v of the class %q", after.DiedAt, after.FailureGroup)
	}
	f.wants(f.get("/dead"), `href="dead?failure_group=Timeout&amp;type=mail"`)
}

func TestBulkStopSaysThatWorkersWereAsked(t *testing.T) {
	t.Parallel()
	if got := bulkWords[wordOf(actionOf("stop"))].done; got != "asked to stop, or removed" {
		t.Errorf("the answer to stop is %q", got)
	}
	if got := bulkWords[wordOf(actionOf("cancel"))].done; got != "cancelled" {
		t.Errorf("the answer to cancel is %q", got)
	}
}

func TestReadersOfFewQueuesAreToldWhatTheySee(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.submits(service.Submission{Queue: "billing.a"})
	f.console = consoleAs(t, f.service, principalOf(t, ""))
	for _, page := range []string{"queues", "jobs", "running", "scheduled", "retrying", "dead", "limits"} {
		f.wants(f.get("/"+page), "You see none: the role read (or operate, or admin) for a queue")
	}
	f.console = consoleAs(t, f.service, principalOf(t, "read:support.*"))
	for _, page := range []string{"queues", "jobs", "dead", "limits"} {
		f.wants(f.get("/"+page), "You see the queues that your roles are for: the role read for others shows more.")
	}
	f.wants(f.get("/workers"), "lacks the role read")
}

// TestSearchTellsWhatItHasFoundSoFar: its count grows from page to page, and its last page does not say that nothing
// matches.
func TestSearchTellsWhatItHasFoundSoFar(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const jobs, hits = 12_000, 2 // more than one call reads
	list := make([]service.Submission, 0, jobs)
	for i := range jobs {
		s := service.Submission{Queue: "q", Body: new(string)}
		if *s.Body = "no"; i < hits {
			*s.Body = "needle"
		}
		list = append(list, s)
		if len(list) == 1000 {
			if _, err := f.service.Submit(t.Context(), f.caller, list, service.SubmitOptions{}); err != nil {
				t.Fatal(err)
			}
			list = list[:0]
		}
	}
	looked, found, cursor, atEnd := 0, 0, "", "" // atEnd: of a search that finds nothing
	for {
		got, err := f.service.Jobs(t.Context(), f.caller, service.JobFilter{BodyText: "nothing"},
			service.JobPage{Limit: 10, Cursor: atEnd, Sort: "created", TimeLimit: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		if got.Cursor == "" {
			break
		}
		atEnd = got.Cursor
	}
	for page := 1; ; page++ {
		got, err := f.service.Jobs(t.Context(), f.caller, service.JobFilter{BodyText: "needle"},
			service.JobPage{Limit: 10, Cursor: cursor, Count: true, Sort: "created", TimeLimit: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		found += len(got.Jobs)
		if got.Count != found || got.Looked <= looked || got.CountExact != (got.Cursor == "") {
			t.Fatalf("page %d: count %d (exact: %v) of %d found, %d jobs read after %d", page, got.Count, got.CountExact,
				found, got.Looked, looked)
		}
		if looked, cursor = got.Looked, got.Cursor; cursor == "" {
			break
		}
		last := f.get("/jobs?body_text=needle&sort=created&cursor=" + url.QueryEscape(cursor))
		if !strings.Contains(last, "searched so far") {
			f.wants(last, "No further job matches.", `<span class="muted">2</span>`)
		}
	}
	if found != hits || looked != jobs {
		t.Errorf("found %d of %d jobs", found, looked)
	}
	f.wants(f.get("/jobs?body_text=nothing&sort=created&cursor="+url.QueryEscape(atEnd)), "No job matches the filter.")
}

func TestJobsAreFoundByTheWorkerThatFailedThem(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, worker := range []string{"w1", "w2"} {
		id := f.submits(service.Submission{Queue: "q", Type: "By-" + worker})
		from := service.LeaseOptions{Queues: []string{"q"}, Worker: worker}
		lease, err := f.service.Lease(t.Context(), f.caller, from)
		if err != nil || lease == nil {
			t.Fatal(id, err)
		}
		if err := f.service.Fail(t.Context(), f.caller, lease.Token, service.FailOptions{Message: "no"}); err != nil {
			t.Fatal(err)
		}
	}
	f.wants(f.get("/jobs?worker=w2"), "No job is leased to the worker w2 now.", `href="jobs?failed_by=w2"`,
		`href="finished?worker=w2"`)
	page := f.get("/jobs?failed_by=w2")
	f.wants(page, "By-w2")
	if strings.Contains(page, "By-w1") {
		t.Error("a job that another worker failed is listed")
	}
}

func TestTimesOfDayAreRanges(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.advance(5*time.Hour + 30*time.Minute)
	f.dies("Early", "no")
	f.advance(3 * time.Hour)
	f.dies("Late", "no")
	page := f.get("/dead?died_from=05:00&died_to=06:00")
	f.wants(page, "Early")
	if strings.Contains(page, "Late") {
		t.Error("a job that died at 8:30 is listed")
	}
}

func TestStepLongerThanItsFieldIsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	_, err := f.service.PutSchedule(t.Context(), f.caller, service.ScheduleChange{
		Name: "s", Cron: "*/90 * * * *", Job: service.Submission{Queue: "q"},
	}, true)
	if err == nil || !strings.Contains(err.Error(), "the step 90 is longer than the field minute") {
		t.Error(err)
	}
}

// TestNextRunsAreShownWhileAScheduleIsTyped: in the zone of the schedule, over the change to summer time, and with the
// words of the API for a mistake.
func TestNextRunsAreShownWhileAScheduleIsTyped(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.advance(time.Date(2030, 3, 29, 0, 0, 0, 0, time.UTC).Sub(f.clock.Now().Time()))
	runs := []string{
		"Fri 2030-03-29 12:00:00 CET", "Sat 2030-03-30 12:00:00 CET", "Sun 2030-03-31 12:00:00 CEST",
		"Mon 2030-04-01 12:00:00 CEST", "Tue 2030-04-02 12:00:00 CEST",
	}
	form := url.Values{"do": {"runs"}, "name": {"s"}, "queue": {"q"}, "cron": {"0 12 * * *"}, "zone": {"Europe/Vienna"}}
	f.wants(f.post("/schedules", form), append(runs, `name="queue" value="q"`, `name="do" value="create"`)...)
	answer := f.get("/complete?" + url.Values{"preview": {"runs"}, "cron": form["cron"], "zone": form["zone"]}.Encode())
	if want := `["` + strings.Join(runs, `","`) + `"]`; answer != want {
		t.Errorf("while it is typed: %s, want %s", answer, want)
	}
	for cron, want := range map[string]string{
		"*/90 * * * *": "the step 90 is longer than the field minute", "0 12 *": "expected five fields of crontab",
	} {
		form.Set("cron", cron)
		f.wants(f.post("/schedules", form), want)
	}
	form.Set("zone", "Vienna")
	form.Set("cron", "0 12 * * *")
	f.wants(f.post("/schedules", form), "is not a time zone such as Europe/Vienna")
	if list, err := f.service.Schedules(t.Context(), f.caller); err != nil || len(list) > 0 {
		t.Errorf("a prediction has made a schedule: %v, %v", list, err)
	}
}
