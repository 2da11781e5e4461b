package cluster_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"broker/integration/harness"
)

// archived waits until the archive has everything.
func (c *cluster) archived() {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		if lag := c.metric(c.leader(), "broker_archive_lag_seconds"); lag != 0 {
			return fmt.Sprintf("the archive is %v s behind", lag)
		}
		return ""
	})
}

// submitJobs submits jobs to a node.
func (c *cluster) submitJobs(i, n int) {
	c.t.Helper()
	for k := range n {
		id := fmt.Sprint("archived-", jobNumbers.Add(1))
		c.do(i, "POST", "/jobs", fmt.Sprintf(`{"id":%q,"queue":"archived","args":[%d]}`, id, k), nil)
	}
}

func TestNewLeaderContinuesTheArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive := filepath.Join(dir, "archive")
	// So slow that the leader that is killed has not shipped its last commits.
	c := prepare(t, nil, fmt.Sprintf("[archive]\ndir = %q\nevery = \"2s\"\n", archive)).start()
	first := c.leader()
	c.archived()
	c.submitJobs(first, 30)
	c.archived()
	c.submitJobs(first, 20)
	c.nodes[first].Process.Kill()
	c.awaitLeaderOtherThan(first)
	second := c.leader()
	c.submitJobs(second, 10)
	c.archived()
	check(t, c.nodes[first].Start())
	c.transfer(first)
	c.submitJobs(first, 5)
	c.archived()
	for _, n := range c.nodes {
		n.Process.Kill()
	}
	bases, err := filepath.Glob(filepath.Join(archive, "*", "base-*"))
	check(t, err)
	if len(bases) != 1 {
		t.Errorf("each new leader has made a copy of the store: %q", bases)
	}
	to := filepath.Join(dir, "restored")
	for _, argv := range [][]string{
		{harness.Binary(t), "doctor", archive},
		{harness.Binary(t), "restore", "--from", archive, "--to", to},
	} {
		harness.Run(t, harness.Command{Argv: argv})
	}
	var report struct{ Jobs map[string]int }
	check(t, json.Unmarshal([]byte(harness.Run(t,
		harness.Command{Argv: []string{harness.Binary(t), "doctor", "-o", "json", to}})), &report))
	if report.Jobs["ready"] != 65 {
		t.Errorf("restored %v, not 65 jobs", report.Jobs)
	}
	single := harness.Prepare(t, harness.Options{})
	single.Data = to
	single.Restart()
	if _, body, err := single.Get("/api/v1/queues/archived"); err != nil || !strings.Contains(body, `"ready":65`) {
		t.Errorf("a broker of its own on it: %s, %v", body, err)
	}
}
