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
	for range 2 {
		time.Sleep(1500 * time.Millisecond)
		i := c.leader()
		c.nodes[i].Process.Kill()
		c.awaitLeaderOtherThan(i)
		time.Sleep(1500 * time.Millisecond)
		c.restart(i)
	}
	c.transfer(c.follower())
	for _, name := range []string{"configured", "stored"} {
		before := c.schedule(name)
		harness.Eventually(t, func() string {
			if s := c.schedule(name); s.Runs < before.Runs+2 {
				return fmt.Sprint(name, " does not run: ", s)
			}
			return ""
		})
		c.do(0, "POST", "/schedules/"+name+"/pause", "", nil)
		c.checkRuns(name)
	}
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

// checkRuns compares the jobs of a schedule that runs once a second with its runs: one job for each, none left out.
func (c *cluster) checkRuns(name string) {
	c.t.Helper()
	var list struct {
		Jobs []struct {
			ID        string
			CreatedAt time.Time `json:"created_at"`
		}
	}
	c.do(0, "GET", "/jobs?limit=1000&queue="+name, "", &list)
	s := c.schedule(name)
	if uint64(len(list.Jobs)) != s.Runs || s.Runs < 6 {
		c.t.Errorf("schedule %s has %d jobs after %d runs", name, len(list.Jobs), s.Runs)
	}
	oldest, ids := time.Now(), make(map[string]bool)
	for _, j := range list.Jobs {
		ids[j.ID] = true
		if j.CreatedAt.Before(oldest) {
			oldest = j.CreatedAt
		}
	}
	// The first run is in the second in which its job was created.
	if due := uint64(s.LastAt.Sub(oldest.Truncate(time.Second))/time.Second) + 1; due != s.Runs {
		c.t.Errorf("schedule %s: %d runs were due from %v to %v, and %d took place", name, due, oldest, s.LastAt,
			s.Runs)
	}
	if len(ids) != len(list.Jobs) {
		c.t.Errorf("schedule %s: %d jobs with %d ids", name, len(list.Jobs), len(ids))
	}
}
