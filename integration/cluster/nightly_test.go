//go:build nightly

package cluster_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// usualFaults is how many faults a nightly run has unless CLUSTER_FAULTS says otherwise.
const usualFaults = 1000

// TestManyFaults goes on with random faults under load; the history of each hundred is checked on its own.
func TestManyFaults(t *testing.T) {
	n := usualFaults
	if text := os.Getenv("CLUSTER_FAULTS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		check(t, err)
	}
	c := prepare(t, newNetwork(), "").start()
	longest, times := make(map[string]time.Duration), make(map[string]int)
	for done := 0; done < n; {
		l := c.begin()
		for range min(100, n-done) {
			time.Sleep(rand.N(200 * time.Millisecond))
			l.resetGap()
			f := faults[rand.N(len(faults))]
			f.do(c)
			longest[f.name] = max(longest[f.name], l.resetGap())
			times[f.name]++
			done++
		}
		l.finish(t)
		for _, f := range faults {
			t.Logf("%s, %d times: at most %v without an acknowledged submission", f.name, times[f.name], longest[f.name].Round(10*time.Millisecond))
		}
		t.Logf("%d faults", done)
		if t.Failed() {
			t.Fatalf("after %d faults", done)
		}
	}
}

func TestOneNodeWithAClockAnHourBehind(t *testing.T) { checkClocksThatDiffer(t, "-1h") }
