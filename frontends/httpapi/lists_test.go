package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"broker/core"
)

// column is one member of each row of an answer.
func column(answer map[string]any, list, member string) []string {
	rows, _ := answer[list].([]any)
	var values []string
	for _, row := range rows {
		values = append(values, fmt.Sprint(row.(map[string]any)[member]))
	}
	return values
}

func TestQueuesComeByNameAndAThousandAtTheMost(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	const queues = pageOfQueues + 2
	for i := range queues {
		d.do(&core.CreateQueue{Queue: fmt.Sprintf("q%04d", queues-1-i)}, core.Accepted)
	}
	names := column(d.want("GET", "/api/queues", 200, nil), "queues", "name")
	if len(names) != 1000 {
		t.Fatalf("%d queues in one answer", len(names))
	}
	for i, name := range names {
		if name != fmt.Sprintf("q%04d", i) {
			t.Fatalf("at place %d is %s", i, name)
		}
	}
	d.want("GET", "/api/queues?limit=1001", 400, map[string]any{"error": "limit must be a number up to 1000"})
	d.want("GET", "/api/queues?offset=1000", 200, map[string]any{"queues.1.name": "q1001", "queues.2": nil})
}

func TestJobsComeAHundredAtATimeUnlessMoreAreAskedFor(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	for range 1100 {
		d.submit(&core.Job{Queue: "q", Origin: core.Gearman})
	}
	for query, pages := range map[string]string{
		"": "100 100 100 100 100 100 100 100 100 100 100", "limit=1000": "1000 100", "limit=600&queue=q&state=ready": "600 500",
	} {
		var got []string
		next := 1
		for cursor := any(""); cursor != nil && len(got) < 20; {
			page := d.want("GET", fmt.Sprintf("/api/jobs?%s&cursor=%v", query, cursor), 200, nil)
			numbers := column(page, "jobs", "seq")
			for _, n := range numbers {
				if n != fmt.Sprint(next) {
					t.Fatalf("%q: job %s, not %d", query, n, next)
				}
				next++
			}
			if cursor = page["cursor"]; len(numbers) > 0 {
				got = append(got, fmt.Sprint(len(numbers)))
			}
		}
		if text := strings.Join(got, " "); text != pages {
			t.Errorf("%q: pages of %s, not %s", query, text, pages)
		}
	}
}

func TestListsHaveTheOrderThatTheyArePromisedIn(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	now := d.engine.Now()
	for _, priority := range []int32{0, -1, 5, 0} {
		d.submit(&core.Job{Queue: "ready", Origin: core.Workq, Priority: priority})
	}
	for _, hours := range []int{3, 1, 2} {
		d.submit(&core.Job{Queue: "later", Origin: core.Faktory, ReadyAt: now.Add(time.Duration(hours) * time.Hour)})
	}
	for query, want := range map[string]string{
		"queue=ready&state=ready":     "[3 1 4 2]",
		"queue=later&state=scheduled": "[6 7 5]",
		"queue=ready":                 "[1 2 3 4]",
		"state=scheduled":             "[5 6 7]",
		"state=ready":                 "[1 2 3 4]",
		"":                            "[1 2 3 4 5 6 7]",
	} {
		if got := fmt.Sprint(column(d.want("GET", "/api/jobs?"+query, 200, nil), "jobs", "seq")); got != want {
			t.Errorf("%s: %s, not %s", query, got, want)
		}
	}
	for query, want := range map[string][]string{"queue=ready&state=ready": {"3", "1", "4", "2"}, "queue=later&state=scheduled": {"6", "7", "5"}} {
		cursor := any("")
		for i, seq := range want { // one by one
			page := d.want("GET", fmt.Sprintf("/api/jobs?limit=1&%s&cursor=%v", query, cursor), 200, map[string]any{"jobs.0.seq": seq})
			if cursor = page["cursor"]; cursor == nil {
				t.Fatalf("%s: no more after %d", query, i+1)
			}
		}
	}
	for _, want := range []uint64{3, 1, 4, 2} {
		if got := d.do(&core.Lease{Queues: []string{"ready"}}, core.Assigned).Seq; got != want {
			t.Errorf("handed out %d, not %d", got, want)
		}
	}
}

func TestLargeBodiesAreShownInPart(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	const most = 1 << 20
	for size, truncated := range map[int]any{most: nil, most + 1: true} {
		seq := d.submit(&core.Job{Queue: "q", Body: []byte(strings.Repeat("x", size)), Origin: core.Gearman})
		job := d.want("GET", fmt.Sprint("/api/jobs/", seq), 200, map[string]any{"body_bytes": float64(size), "body_truncated": truncated})
		if shown := len(fmt.Sprint(job["body"])); shown != most {
			t.Errorf("%d bytes of %d are shown", shown, size)
		}
	}
	seq := d.submit(&core.Job{Queue: "q", Body: []byte(`["` + strings.Repeat("x", most) + `"]`), Format: core.Args, Origin: core.Faktory})
	d.want("GET", fmt.Sprint("/api/jobs/", seq), 200, map[string]any{"body_truncated": true, "args": nil})
}

func TestABacktraceIsShownWithOneJobOnly(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	seq := d.submit(&core.Job{
		Queue: "q", Origin: core.Faktory, MaxFails: 3, Backoff: core.BackoffFaktory, Attributes: []byte(`{"custom":{"x":1}}`),
	})
	d.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"}, core.Assigned)
	d.do(&core.Fail{Ref: core.Ref{Seq: seq}, Authority: core.ByLeased, Failure: &core.Failure{
		Type: "E", Backtrace: []string{"line"},
	}}, core.Accepted)
	d.want("GET", "/api/jobs", 200, map[string]any{
		"jobs.0.failure.type": "E", "jobs.0.failure.backtrace": nil, "jobs.0.attributes": nil, "jobs.0.body": nil,
	})
	d.want("GET", fmt.Sprint("/api/jobs/", seq), 200, map[string]any{
		"failure.backtrace.0": "line", "attributes.custom.x": 1,
	})
}

func TestDaysComeWithTheNewestFirst(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	for day := range 3 { // one job, then two, then three
		for range day + 1 {
			d.submit(&core.Job{Queue: "q", Origin: core.Faktory})
			r := d.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"}, core.Assigned)
			if day == 2 {
				d.do(&core.Fail{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased, Failure: &core.Failure{}}, core.Accepted)
			} else {
				d.do(&core.Complete{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased}, core.Accepted)
			}
		}
		if day < 2 {
			d.clock.Advance(24 * time.Hour)
			d.engine.Tick()
		}
	}
	answer := d.want("GET", "/api/history", 200, map[string]any{"total_processed": 6, "total_failed": 3})
	for member, want := range map[string]string{
		"date": "[2030-01-03 2030-01-02 2030-01-01]", "processed": "[3 2 1]", "failed": "[3 0 0]",
	} {
		if got := fmt.Sprint(column(answer, "days", member)); got != want {
			t.Errorf("%s: %s, not %s", member, got, want)
		}
	}
	d.want("GET", "/api/history?days=1", 200, map[string]any{"days.0.date": "2030-01-03", "days.1": nil})
}

func TestNamesInPathsAreEscaped(t *testing.T) {
	t.Parallel()
	d := sitDown(t, Options{})
	for _, name := range []string{"a/b", "a b", "a?b", "ä", "pause", "a%2Fb"} {
		d.submit(&core.Job{Queue: name, Origin: core.Gearman})
		if status, _ := d.ask(http.MethodGet, "/api/queues/"+url.PathEscape(name)); status != http.StatusOK {
			t.Errorf("%q: %d", name, status)
		}
	}
}
