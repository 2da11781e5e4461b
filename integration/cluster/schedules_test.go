package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"broker/integration/harness"
)

// cronEachSecond is a schedule of the settings.
const cronEachSecond = `
[[cron]]
name = "configured"
schedule = "* * * * * *"
missed = "all"
  [cron.job]
    type = "Tick"
    queue = "configured"
    args = []
`

// Schedules run on the leader alone. Over a hand-over and two deaths of the leader, each run that was due has exactly
// one job.
func TestSchedulesRunOnceOverAFailover(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, cronEachSecond).start()
	const stored = `{"name":"stored","every_s":1,"missed":"all","job":{"id":"run","queue":"stored"}}`
	c.do(c.follower(), "POST", "/schedules", stored, nil)
	names, first := []string{"configured", "stored"}, map[string]schedule{}
	for _, name := range names {
		first[name] = c.ran(name, 1)
	}
	for range 2 {
		time.Sleep(1500 * time.Millisecond)
		i := c.leader()
		c.nodes[i].Process.Kill()
		c.awaitLeaderOtherThan(i)
		time.Sleep(1500 * time.Millisecond)
		c.restart(i)
	}
	c.transfer(c.follower())
	for _, name := range names {
		c.ran(name, max(6, c.schedule(name).Runs+2))
		c.do(0, "POST", "/schedules/"+name+"/pause", "", nil)
		c.checkRuns(name, first[name])
	}
}

// ran waits until a schedule has run n times.
func (c *cluster) ran(name string, n uint64) (s schedule) {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		if s = c.schedule(name); s.Runs < n {
			return fmt.Sprint(name, " does not run: ", s)
		}
		return ""
	})
	return s
}

// schedule is a schedule as a node shows it.
type schedule struct {
	LastAt time.Time `json:"last_at"`
	Runs   uint64    `json:"runs"`
}

func (c *cluster) schedule(name string) (s schedule) {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		if err := c.api(c.follower(), "GET", "/schedules/"+name, "", &s); err != nil {
			return err.Error()
		}
		return ""
	})
	return s
}

// checkRuns compares the jobs of a schedule that runs once a second with its runs: one job for each, and none left out
// since it was first seen.
func (c *cluster) checkRuns(name string, first schedule) {
	c.t.Helper()
	var list struct{ Jobs []struct{ ID string } }
	c.do(0, "GET", "/jobs?limit=1000&queue="+name, "", &list)
	s := c.schedule(name)
	if uint64(len(list.Jobs)) != s.Runs {
		c.t.Errorf("schedule %s has %d jobs after %d runs", name, len(list.Jobs), s.Runs)
	}
	ids := make(map[string]bool)
	for _, j := range list.Jobs {
		ids[j.ID] = true
	}
	if due := uint64(s.LastAt.Sub(first.LastAt).Round(time.Second) / time.Second); due != s.Runs-first.Runs {
		c.t.Errorf("schedule %s: %d runs were due from %v to %v, and %d took place", name, due, first.LastAt, s.LastAt,
			s.Runs-first.Runs)
	}
	if len(ids) != len(list.Jobs) {
		c.t.Errorf("schedule %s: %d jobs with %d ids", name, len(list.Jobs), len(ids))
	}
}
