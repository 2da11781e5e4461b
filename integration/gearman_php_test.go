package integration_test

import (
	"fmt"
	"slices"
	"testing"

	"broker/integration/harness"
)

func needPHP(t *testing.T) {
	t.Helper()
	harness.Need(t, "php", "php-gearman")
}

func TestPHPForegroundOutcomes(t *testing.T) {
	t.Parallel()
	needPHP(t)
	b := start(t)
	phpWorker(t, b, "reverse=reverse", "fails=fail", "throws=exception", "progress=progress", "echo=echo")

	for _, priority := range []string{"normal", "high", "low"} {
		done := only(t, phpClient(t, b, "hello", "do", priority, "reverse"), "complete")
		equal(t, priority, string(done.Data), "olleh")
	}
	equal(t, "events of a failure", kinds(phpClient(t, b, "x", "do", "normal", "fails")), "fail")
	equal(t, "events of an exception", kinds(phpClient(t, b, "x", "do", "normal", "throws")), "exception")

	// Tasks have callbacks; do… only returns the outcome.
	events := phpClient(t, b, "x", "tasks", "progress", "1")
	equal(t, "order of progress", kinds(events), "created status data warning data status complete")
	equal(t, "first status", fmt.Sprint(events[1].Num, "/", events[1].Den), "1/4")
	equal(t, "second status", fmt.Sprint(events[5].Num, "/", events[5].Den), "3/4")
	equal(t, "data", bodies(events, "data"), []string{"first ", "second "})
	equal(t, "warning", bodies(events, "warning"), []string{"careful"})
	equal(t, "result", bodies(events, "complete"), []string{"end"})

	binary := "\x00\xff\r\n\x00RES" + string(make([]byte, 1000))
	equal(t, "binary body", bodies(phpClient(t, b, binary, "do", "normal", "echo"), "complete"), []string{binary})
}

func TestPHPTasksRunInParallelWithCallbacks(t *testing.T) {
	t.Parallel()
	needPHP(t)
	b := start(t)
	for range 3 {
		phpWorker(t, b, "reverse=reverse", "fails=fail", "throws=exception", "progress=progress")
	}
	const count = 300
	events := phpClient(t, b, "n", "tasks", "reverse", fmt.Sprint(count))
	var want []string
	for i := range count {
		r := []byte(fmt.Sprint("n", i))
		slices.Reverse(r)
		want = append(want, string(r))
	}
	slices.Sort(want)
	equal(t, "results", bodies(events, "complete"), want)
	equal(t, "acknowledged tasks", len(bodies(events, "created")), count)

	equal(t, "failures", len(bodies(phpClient(t, b, "n", "tasks", "fails", "20"), "fail")), 20)
	events = phpClient(t, b, "n", "tasks", "progress", "20")
	for kind, n := range map[string]int{"complete": 20, "data": 40, "warning": 20, "status": 40} {
		equal(t, kind, len(bodies(events, kind)), n)
	}
	// Clients must request exceptions; PHP does so as soon as the callback is set.
	exceptions := bodies(phpClient(t, b, "n", "tasks", "throws", "5"), "exception")
	equal(t, "exceptions", exceptions, []string{"broken: n0", "broken: n1", "broken: n2", "broken: n3", "broken: n4"})
}

func TestPHPBackgroundJobCanBePolled(t *testing.T) {
	t.Parallel()
	needPHP(t)
	b := start(t)
	handle := only(t, phpClient(t, b, "x", "background", "high", "held", "my-unique"), "created").ID
	status := only(t, phpClient(t, b, "", "status", handle), "jobstatus")
	equal(t, "waiting", fmt.Sprint(status.Known, status.Active), "true false")

	w := phpWorker(t, b, "held=hold")
	job := w.Await("job", 1)[0]
	equal(t, "handle at the worker", job.ID, handle)
	equal(t, "unique at the worker", job.Unique, "my-unique")
	harness.Eventually(t, func() string {
		s := only(t, phpClient(t, b, "", "status", handle), "jobstatus")
		if got := fmt.Sprint(s.Known, s.Active, s.Num, s.Den); got != "true true 1 2" {
			return "status while running: " + got
		}
		return ""
	})
	byUnique := only(t, phpClient(t, b, "", "status-unique", "my-unique"), "jobstatus")
	equal(t, "by unique", fmt.Sprint(byUnique.Known, byUnique.Active), "true true")
	unknown := only(t, phpClient(t, b, "", "status", "H:nowhere:4711"), "jobstatus")
	equal(t, "unknown", fmt.Sprint(unknown.Known, unknown.Active), "false false")
}

func TestPHPWorkerThatDiesGivesItsJobBack(t *testing.T) {
	t.Parallel()
	needPHP(t)
	b := start(t)
	phpClient(t, b, "precious", "background", "normal", "held")
	first := phpWorker(t, b, "held=hold")
	id := first.Await("job", 1)[0].ID
	first.Process.Kill()
	second := phpWorker(t, b, "held=echo")
	again := second.Await("job", 1)[0]
	equal(t, "handle", again.ID, id)
	equal(t, "body", string(again.Data), "precious")
	awaitStatus(t, b, "held", "0 0 1")
}
