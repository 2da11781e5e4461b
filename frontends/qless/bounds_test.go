package qless

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"broker/frontends/frontendtest"
)

// jobsIn counts the jobs of a reply.
func jobsIn(reply string) int { return strings.Count(reply, `"jid":`) }

func TestOneCallHandlesALimitedNumberOfJobs(t *testing.T) {
	t.Parallel()
	_, c := setup(t, frontendtest.InMemory)
	const jobs = 2*maxJobsOfCall + 7
	for i := range jobs {
		c.call("put", "1", "me", "q", fmt.Sprint("j", i), "K", "{}", "0")
	}
	if n := jobsIn(c.call("peek", "2", "q", "1000000")); n != maxJobsOfCall {
		t.Errorf("peek returned %d jobs", n)
	}
	if n := jobsIn(c.call("peek", "2", "q", "-1")); n != maxJobsOfCall {
		t.Errorf("peek without a limit returned %d jobs", n)
	}
	for _, want := range []int{maxJobsOfCall, maxJobsOfCall, 7} {
		if n := jobsIn(c.call("pop", "2", "q", "w", "1000000")); n != want {
			t.Errorf("pop returned %d jobs, want %d", n, want)
		}
	}
	for i := range jobs {
		c.call("fail", "3", fmt.Sprint("j", i), "w", "g", "m", "{}")
	}
	for _, want := range []int{maxJobsOfCall, maxJobsOfCall, 7, 0} {
		c.want(fmt.Sprint(":", want), "unfail", "4", "q", "g", "1000000")
	}
	c.want(fmt.Sprint(":", jobs), "length", "5", "q")
}

func TestExpiredLocksOfOneCallAreLimited(t *testing.T) {
	t.Parallel()
	_, c := setup(t, frontendtest.InMemory)
	c.call("config.set", "1", "grace-period", "0")
	const jobs = maxJobsOfCall + 5
	for i := range jobs {
		c.call("put", "1", "me", "q", fmt.Sprint("j", i), "K", "{}", "0")
		c.call("pop", "2", "q", "w", "1")
	}
	for _, want := range []int{maxJobsOfCall, 5} {
		if n := jobsIn(c.call("pop", "1000000", "q", "v", "1000000")); n != want {
			t.Errorf("pop returned %d jobs, want %d", n, want)
		}
	}
}

func TestOneCallReturnsALimitedAmountOfData(t *testing.T) {
	t.Parallel()
	_, c := setup(t, frontendtest.InMemory)
	data := `{"x":"` + strings.Repeat("x", maxBytesOfCall/5) + `"}`
	const jobs = 6
	for i := range jobs {
		c.call("put", "1", "me", "q", fmt.Sprint("j", i), "K", data, "0")
	}
	if n := jobsIn(c.call("peek", "2", "q", "100")); n != 4 {
		t.Errorf("peek returned %d jobs", n)
	}
	for _, want := range []int{4, 2, 0} {
		if n := jobsIn(c.call("pop", "2", "q", "w", "100")); n != want {
			t.Errorf("pop returned %d jobs, want %d", n, want)
		}
	}
	many := []string{"multiget", "3"}
	for i := range 30 {
		many = append(many, fmt.Sprint("j", i%jobs))
	}
	if got := c.call(many...); !strings.Contains(got, "ask for fewer") {
		t.Errorf("multiget returned %d bytes", len(got))
	}
}

// The work for a list must grow with its length, not with its square. It measures the allocations of the process, so it
// does not run in parallel.
func TestLongListsOfTagsAndDependenciesTakeLinearMemory(t *testing.T) {
	_, c := setup(t, frontendtest.InMemory)
	const length = 3000
	var tags, jids []string
	for i := range length {
		tags, jids = append(tags, fmt.Sprint("t", i)), append(jids, fmt.Sprint("j", i))
		c.call("put", "1", "me", "q", jids[i], "K", "{}", "0")
	}
	list := func(items []string) string { return `["` + strings.Join(items, `","`) + `"]` }
	for _, words := range [][]string{
		{"put", "2", "me", "q", "tagged", "K", "{}", "0", "tags", list(tags)},
		append([]string{"tag", "2", "remove", "tagged"}, tags...),
		append([]string{"tag", "2", "add", "tagged"}, tags...),
		{"cancel", "2", "tagged"},
		{"put", "2", "me", "q", "blocked", "K", "{}", "0", "depends", list(jids)},
		append([]string{"depends", "2", "blocked", "off"}, jids...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := c.call(words...)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 10_000*length || strings.HasPrefix(got, "-") {
			t.Errorf("%s allocated %d bytes an item: %.80s", words[0], n/length, got)
		}
	}
}
