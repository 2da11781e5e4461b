//go:build nightly

package integration_test

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// pipeline sends calls of one operation, many at a time, and checks that none is refused.
func (c qlessCalls) pipeline(calls int, operation func(i int) []string) {
	c.t.Helper()
	const atOnce = 1000
	for from := 0; from < calls; from += atOnce {
		var b strings.Builder
		n := min(atOnce, calls-from)
		for i := range n {
			words := append([]string{"EVAL", qlessScript, "0"}, operation(from+i)...)
			fmt.Fprintf(&b, "*%d\r\n", len(words))
			for _, w := range words {
				fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
			}
		}
		check(c.t, c.conn.SetDeadline(time.Now().Add(harness.Patience)))
		_, err := c.conn.Write([]byte(b.String()))
		check(c.t, err)
		for range n {
			check(c.t, skipReply(c.r))
		}
	}
}

// skipReply reads a reply that is a string.
func skipReply(r *bufio.Reader) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	var size int
	if _, err := fmt.Sscanf(line, "$%d", &size); err != nil {
		return fmt.Errorf("reply %q", line)
	}
	_, err = r.Discard(size + 2)
	return err
}

func TestQlessHoldsAMillionJobs(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: other tests would affect its durations
	b, addr := startQless(t)
	c := dialQlessCalls(t, addr)
	const jobs, mostBytes, mostTime = 1_000_000, 1200 << 20, 2 * time.Minute
	begin := time.Now()
	c.pipeline(jobs, func(i int) []string {
		return []string{
			"put", "1700000000.5", "me", "deep", fmt.Sprintf("0123456789abcdef-%010d", i), "module.Klass",
			`{"user":12345,"note":"hello"}`, "0",
		}
	})
	t.Logf("%d puts in %v", jobs, time.Since(begin))
	small := func(when string) {
		t.Helper()
		rss, err := server.ResidentBytes(b.PID())
		check(t, err)
		if t.Logf("%s: %d MB", when, rss>>20); rss > mostBytes {
			t.Errorf("%s: %d bytes are resident", when, rss)
		}
	}
	small("a million jobs")
	_ = c.conn.Close() // every reply was read
	_, _ = b.Terminate()
	begin = time.Now()
	b.Restart()
	if took := time.Since(begin); took > mostTime {
		t.Errorf("the restart took %v", took)
	}
	small("after a restart")
	c = dialQlessCalls(t, addr)
	equal(t, "jobs after the restart", c.do("length", "deep"), fmt.Sprint(":", jobs))
	begin = time.Now()
	const popped = 2000
	for i := range popped {
		job := c.pop("deep", "w")
		equal(t, "order", job.Jid, fmt.Sprintf("0123456789abcdef-%010d", jobs-1-i))
		equal(t, "complete", c.do("complete", job.Jid, "w", "deep", "{}"), "complete")
	}
	t.Logf("pop and complete of one job: %v", time.Since(begin)/popped)
}

func TestQlessWithThousandsOfTagsAndRecurringJobs(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: other tests would affect its durations
	_, addr := startQless(t)
	c := dialQlessCalls(t, addr)
	const tags, recurring = 10_000, 1000
	c.pipeline(tags, func(i int) []string {
		return []string{
			"put", "1700000000", "me", "tagged", fmt.Sprint("tagged-", i), "K", "{}", "0", "tags",
			fmt.Sprintf(`["t%d","all"]`, i),
		}
	})
	c.pipeline(recurring, func(i int) []string {
		return []string{"recur", "1700000000", "again", fmt.Sprint("rec-", i), "K", "{}", "interval", "1000000000", "0"}
	})
	for name, words := range map[string][]string{
		"tag get": {"tag", "get", "all", "5000", "25"}, "tag top": {"tag", "top"},
		"a pop of 1,000 recurring jobs": {"pop", "again", "w", "1000"},
	} {
		begin := time.Now()
		text := c.do(words[0], words[1:]...)
		took := time.Since(begin)
		if t.Logf("%s: %v", name, took); took > 2*time.Second || len(text) < 7 {
			t.Errorf("%s took %v: %.100s", name, took, text)
		}
	}
}
