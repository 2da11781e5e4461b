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
	var longest time.Duration
	for done := 0; done < n; {
		l := c.begin()
		for range min(100, n-done) {
			time.Sleep(rand.N(200 * time.Millisecond))
			l.resetGap()
			faults[rand.N(len(faults))].do(c)
			longest = max(longest, l.resetGap())
			done++
		}
		l.finish(t)
		t.Logf("%d faults; longest without an acknowledged submission %v", done, longest.Round(10*time.Millisecond))
		if t.Failed() {
			t.Fatalf("after %d faults", done)
		}
	}
}

func TestOneNodeWithAClockAnHourBehind(t *testing.T) { checkClocksThatDiffer(t, "-1h") }
