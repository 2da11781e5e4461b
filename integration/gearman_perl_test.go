package integration_test

import (
	"fmt"
	"testing"

	"broker/integration/harness"
)

func needPerl(t *testing.T) {
	t.Helper()
	harness.Need(t, "perl", "perl-gearman")
}

func TestPerlForegroundOutcomes(t *testing.T) {
	t.Parallel()
	needPerl(t)
	b := start(t)
	perlWorker(t, b, "reverse=reverse", "fails=fail", "progress=progress", "echo=echo", "slow=echo/60")
	for _, priority := range []string{"normal", "high", "low"} {
		done := only(t, perlClient(t, b, "hello", "do", priority, "reverse"), "complete")
		equal(t, priority, string(done.Data), "olleh")
	}
	equal(t, "events of a failure", kinds(perlClient(t, b, "x", "do", "normal", "fails")), "fail")
	events := perlClient(t, b, "x", "do", "normal", "progress")
	equal(t, "order of progress", kinds(events), "status data warning data status complete")
	equal(t, "result", bodies(events, "complete"), []string{"end"})
	equal(t, "with a timeout", bodies(perlClient(t, b, "x", "do", "normal", "slow"), "complete"), []string{"x"})
}

func TestPerlExceptionReachesTheClient(t *testing.T) {
	t.Parallel()
	needPerl(t)
	b := start(t)
	perlWorker(t, b, "throws=exception")
	events := perlClient(t, b, "x", "do", "normal", "throws")
	equal(t, "exception", bodies(events, "exception"), []string{"broken: x\n"})
}

func TestPerlTaskSet(t *testing.T) {
	t.Parallel()
	needPerl(t)
	b := start(t)
	perlWorker(t, b, "upper=upper")
	perlWorker(t, b, "upper=upper")
	const count = 100
	events := perlClient(t, b, "n", "taskset", "upper", fmt.Sprint(count))
	seen := map[string]string{}
	for _, e := range events {
		if e.Event == "complete" {
			seen[e.Unique] = string(e.Data)
		}
	}
	equal(t, "tasks", len(seen), count)
	for i := range count {
		equal(t, "result", seen[fmt.Sprint("task-", i)], fmt.Sprint("N", i))
	}
}

func TestPerlRetriesAFailedTask(t *testing.T) {
	t.Parallel()
	needPerl(t)
	b := start(t)
	w := perlWorker(t, b, "fails=fail")
	equal(t, "events", kinds(perlClient(t, b, "x", "retry", "fails", "2")), "retry retry fail")
	equal(t, "runs", len(w.Await("job", 3)), 3)
}

func TestPerlBackgroundJobCanBePolled(t *testing.T) {
	t.Parallel()
	needPerl(t)
	b := start(t)
	handle := only(t, perlClient(t, b, "x", "background", "normal", "later"), "created").ID
	s := only(t, perlClient(t, b, "", "status", handle), "jobstatus")
	equal(t, "waiting", fmt.Sprint(s.Known, s.Active), "true false")
	perlWorker(t, b, "later=echo")
	harness.Eventually(t, func() string {
		if s := only(t, perlClient(t, b, "", "status", handle), "jobstatus"); s.Known {
			return fmt.Sprintf("still known: %+v", s)
		}
		return ""
	})
}

func TestPerlAndPHPWorkForEachOther(t *testing.T) {
	t.Parallel()
	needPerl(t)
	needPHP(t)
	b := start(t)
	phpWorker(t, b, "by-php=progress")
	perlWorker(t, b, "by-perl=progress")
	want := "status data warning data status complete"
	equal(t, "Perl client, PHP worker", kinds(perlClient(t, b, "x", "do", "normal", "by-php")), want)
	equal(t, "PHP client, Perl worker", kinds(phpClient(t, b, "x", "tasks", "by-perl", "1")), "created "+want)
}
