//go:build nightly

package cluster_test

import (
	crand "crypto/rand"
	"encoding/base64"
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
			t.Logf("%s, %d times: at most %v without an acknowledged submission", f.name, times[f.name],
				longest[f.name].Round(10*time.Millisecond))
		}
		t.Logf("%d faults", done)
		if t.Failed() {
			t.Fatalf("after %d faults", done)
		}
	}
}

// Of 50 kills of the leader, at least 99 of 100 connections at the other nodes see no more than a pause.
func TestClientsOutliveManyKills(t *testing.T) {
	opened, ended, pauses := killLeaders(t, 50)
	if ended*100 > opened {
		t.Errorf("%d of %d connections have ended", ended, opened)
	}
	if worst := pauses[len(pauses)-1]; worst > time.Second {
		t.Errorf("a client paused for %v", worst)
	}
}

// A node that lost a store of a gigabyte gets a copy while clients work. It says how long that takes, and how much
// slower they are: on a machine that the three nodes share, the copy takes its processor time and disk from the leader
// as well.
func TestCopyOfAGigabyteUnderLoad(t *testing.T) {
	const jobs, bytes = 256_000, 4 << 10
	c := start(t)
	c.transfer(0)
	c.fillWith(jobs, func(int) string { // that cannot be compressed
		random := make([]byte, bytes*3/4)
		_, _ = crand.Read(random) // never fails
		return base64.StdEncoding.EncodeToString(random)
	})
	l := &load{c: c, stop: make(chan struct{}), lastAck: time.Now()}
	for range 4 {
		l.clients.Go(func() { l.produce(c.nodes[0], protocols[2]) })
	}
	rate := func(during func()) float64 {
		before, from := l.history.count(submitted), time.Now()
		during()
		return float64(l.history.count(submitted)-before) / time.Since(from).Seconds()
	}
	usual := rate(func() { time.Sleep(10 * time.Second) })
	c.nodes[2].Process.Kill()
	check(t, os.RemoveAll(c.nodes[2].Data))
	from := time.Now()
	copying := rate(func() { c.restart(2) })
	t.Logf("the copy took %v; %.0f submissions a second before, %.0f meanwhile; longest without an acknowledgement %v",
		time.Since(from).Round(100*time.Millisecond), usual, copying, l.resetGap().Round(10*time.Millisecond))
	close(l.stop)
	l.clients.Wait()
	if copying < usual/4 {
		t.Errorf("%.0f submissions a second while a node gets a copy, %.0f before", copying, usual)
	}
}

func TestOneNodeWithAClockAnHourBehind(t *testing.T) { checkClocksThatDiffer(t, "-1h") }
