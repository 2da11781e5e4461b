package integration_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"broker/integration/harness"
)

// quickest is the shortest time that a request takes of five.
func quickest(t *testing.T, b *harness.Broker, path string) time.Duration {
	t.Helper()
	best := time.Hour
	for range 5 {
		begin := time.Now()
		api(t, b, "GET", path)
		best = min(best, time.Since(begin))
	}
	return best
}

// submitThousand submits a thousand jobs with one request; queue names the queue of the n-th.
func submitThousand(t *testing.T, b *harness.Broker, queue func(n int) string) {
	t.Helper()
	jobs := make([]string, 1000)
	for i := range jobs {
		jobs[i] = fmt.Sprintf(`{"queue":%q,"type":"t"}`, queue(i))
	}
	api(t, b, "POST", "/jobs", `{"jobs":[`+strings.Join(jobs, ",")+`]}`)
}

// cursorAfter follows a list for so many pages, or to its end, and returns the last cursor.
func cursorAfter(t *testing.T, b *harness.Broker, list string, pages int) (cursor string) {
	t.Helper()
	for range pages {
		next, more := api(t, b, "GET", list+"&cursor="+cursor)["cursor"].(string)
		if !more {
			break
		}
		cursor = next
	}
	return cursor
}

func TestPagesAreQuickWithManyJobsAndQueues(t *testing.T) {
	harness.BrokerOnly(t)
	queues, jobs := 2000, 4000
	if harness.Nightly {
		queues, jobs = 100_000, 10_000_000
	}
	b := harness.Start(t, harness.Options{Durability: "none", Env: []string{"GOMEMLIMIT=6GiB"}})
	for i := range queues / 1000 {
		submitThousand(t, b, func(n int) string { return fmt.Sprintf("queue-%d", i*1000+n) })
	}
	submitMany(t, b, "deep", jobs)
	middle := cursorAfter(t, b, "/jobs?queue=deep&sort=queue&limit=1000", 50)
	for path, limit := range map[string]time.Duration{
		"/queues":                              20 * time.Millisecond,
		"/queues?sort=-ready":                  100 * time.Millisecond, // it reads a number of every queue
		"/queues?sort=-name":                   100 * time.Millisecond,
		"/jobs":                                10 * time.Millisecond,
		"/jobs?sort=-created":                  10 * time.Millisecond,
		"/jobs?queue=deep&state=ready":         10 * time.Millisecond,
		"/jobs?queue=deep&sort=queue&limit=50": 10 * time.Millisecond,

		"/jobs?queue=deep&sort=queue&cursor=" + middle: 10 * time.Millisecond,
	} {
		took := quickest(t, b, path)
		t.Logf("%s: %v", path, took)
		harness.CheckDuration(t, path, took, limit)
	}
}

// Many listeners read as slowly as they like: what they miss is counted, and other clients do not wait for them.
func TestListenersCostOtherClientsNothing(t *testing.T) {
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Durability: "none"})
	const listeners = 200
	var events, dropped atomic.Int64
	for range listeners {
		resp, err := http.Get("http://" + b.HTTP + "/api/v1/events")
		check(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() }) // ends the goroutine
		go func() {                                 // ends with the body
			lines := bufio.NewScanner(resp.Body)
			for lines.Scan() {
				switch line := lines.Text(); {
				case line == "event: dropped":
					dropped.Add(1)
				case strings.HasPrefix(line, "id:"):
					events.Add(1)
				}
			}
		}()
	}
	rounds, least := 0, 10
	if harness.Nightly {
		least = 100
	}
	begin := time.Now()
	var worst time.Duration
	for ; rounds < least || events.Load() == 0 || dropped.Load() == 0; rounds++ {
		if time.Since(begin) > harness.Patience {
			t.Fatalf("%d events, %d reports of dropped ones after %d rounds", events.Load(), dropped.Load(), rounds)
		}
		submitThousand(t, b, func(int) string { return "busy" })
		ask := time.Now()
		api(t, b, "GET", "/drain")
		worst = max(worst, time.Since(ask))
	}
	took := time.Since(begin)
	t.Logf("%d events in %v; %d reached %d listeners, %d times events were dropped; the slowest other request took %v",
		2*rounds*1000, took, events.Load(), listeners, dropped.Load(), worst)
	harness.CheckDuration(t, "a request beside 200 listeners", worst, time.Second)
}
