//go:build nightly

package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// usualBacklog is the number of scheduled jobs, and of retrying jobs. FAKTORY_BURDEN changes it.
const usualBacklog = 20_000

func TestScheduledAndRetryingJobsDoNotSlowPushAndFetch(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: it compares times
	burden := sizeOf(t, "FAKTORY_BURDEN", usualBacklog)
	// Without waiting for commits: whether a burst just misses a commit may double the time of a PUSH.
	relaxed := harness.Options{Durability: "relaxed"}
	// the second one has the scheduled and retrying jobs
	brokers := []*harness.Broker{harness.Start(t, relaxed), harness.Start(t, relaxed)}
	begin := time.Now()
	addBacklog(t, brokers[1], burden)
	t.Logf("%d scheduled and %d retrying jobs took %v", burden, burden, time.Since(begin).Round(time.Millisecond))
	awaitIdle(t, brokers...)

	links := []*faktoryLink{linkFaktory(t, brokers[0]), linkFaktory(t, brokers[1])}
	const turns = 60
	push, fetch := [2][]time.Duration{}, [2][]time.Duration{}
	for turn := range turns + 2 {
		for which, l := range links {
			p, f := l.turn(turn)
			if turn >= 2 { // the first turns warm up
				push[which], fetch[which] = append(push[which], p), append(fetch[which], f)
			}
		}
	}
	for name, took := range map[string][2][]time.Duration{"PUSH": push, "FETCH": fetch} {
		empty, full := median(took[0]), median(took[1])
		ratio := float64(full) / float64(empty)
		t.Logf("%s: median per job: empty %v, with backlog %v: %.3f times", name, empty, full, ratio)
		if ratio > 1.5 { // 1.1 on an idle machine
			t.Errorf("%s takes %.2f times as long with %d scheduled and as many retrying jobs", name, ratio, burden)
		}
	}
	status := fktState(t, dialFaktory(t, brokers[1])).Data.Sets
	equal(t, "still there", fmt.Sprint(status["scheduled"], status["retries"]), fmt.Sprint(burden, burden))
}

// turn pushes, fetches and acknowledges jobs, and returns the time of a PUSH and of a FETCH.
func (l *faktoryLink) turn(turn int) (push, fetch time.Duration) {
	l.t.Helper()
	const jobs = 400
	var pushes, acks strings.Builder
	for i := range jobs {
		fmt.Fprintf(&pushes, "PUSH {\"jid\":\"turn-%d-%d\",\"queue\":\"busy\",\"jobtype\":\"x\",\"args\":[%d,%q]}\r\n",
			turn, i, i, strings.Repeat("x", 200))
		fmt.Fprintf(&acks, "ACK {\"jid\":\"turn-%d-%d\"}\r\n", turn, i)
	}
	begin := time.Now()
	l.expect("OK", pushes.String(), jobs)
	push = time.Since(begin) / jobs
	begin = time.Now()
	l.expect(`"queue":"busy"`, strings.Repeat("FETCH busy\r\n", jobs), jobs)
	fetch = time.Since(begin) / jobs
	l.expect("OK", acks.String(), jobs)
	return push, fetch
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// addBacklog creates count scheduled and count retrying jobs, none of which is due during the test.
func addBacklog(t testing.TB, b *harness.Broker, count int) {
	t.Helper()
	const burst = 1000
	at := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	l := linkFaktory(t, b)
	for base := 0; base < count; base += burst {
		n := min(burst, count-base)
		bulk := func(kind, more string) {
			text := []byte("PUSHB [")
			for i := range n {
				text = fmt.Appendf(text,
					`{"jid":"%s-%d","queue":"%s","jobtype":"x","args":[%d,"0123456789abcdef"],%s},`,
					kind, base+i, kind, i, more)
			}
			text[len(text)-1] = ']'
			l.expect("{}", string(text)+"\r\n", 1)
		}
		bulk("scheduled", `"at":"`+at+`"`)
		// A job that has failed ten times waits for hours.
		bulk("failed",
			`"failure":{"retry_count":10,"remaining":10,"failed_at":"2026-01-01T00:00:00Z","message":"m","errtype":"e"}`)
		l.expect(`"queue":"failed"`, strings.Repeat("FETCH failed\r\n", n), n)
		var fails strings.Builder
		for i := range n {
			fmt.Fprintf(&fails, "FAIL {\"jid\":\"failed-%d\",\"errtype\":\"Broken\",\"message\":\"it broke\"}\r\n",
				base+i)
		}
		l.expect("OK", fails.String(), n)
	}
}

// awaitIdle waits until the brokers are idle: their stores are compacted for a while.
func awaitIdle(t testing.TB, brokers ...*harness.Broker) {
	t.Helper()
	for range 60 {
		before := cpuOf(t, brokers)
		time.Sleep(500 * time.Millisecond)
		if cpuOf(t, brokers)-before <= 30*time.Millisecond {
			return
		}
	}
	t.Log("the brokers are still busy, which affects the measurements")
}

func cpuOf(t testing.TB, brokers []*harness.Broker) (sum time.Duration) {
	t.Helper()
	for _, b := range brokers {
		cpu, err := server.CPUTime(b.PID())
		check(t, err)
		sum += cpu
	}
	return sum
}
