//go:build nightly

package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"broker/integration/harness"
)

// feature is a request that stores what the oldest program does not know. Its name is that in docs/versions.md.
type feature struct{ name, method, path, body string }

// newFeatures are the features that a client can ask for with one request of HTTP.
var newFeatures = []feature{
	{"priorities of more than 32 bits", "POST", "/jobs", `{"queue":"f","id":"wide","priority":4294967295}`},
	{"on_broken", "POST", "/jobs", `{"queue":"f","id":"broken","after":["base"],"on_broken":"drop"}`},
	{"cost", "POST", "/jobs", `{"queue":"f","id":"cost","cost":7}`},
	{"deadlines", "POST", "/jobs", `{"queue":"f","id":"deadline","deadline_in_s":3600}`},
	{
		"unique windows", "POST", "/jobs",
		`{"queue":"f","id":"window","unique_key":"k","unique_for_s":3600,"unique_until":"window"}`,
	},
	{"limits of several queues", "PUT", "/limits", `{"name":"both","queues":["f","g"],"concurrency":3}`},
	{"limits and sharing of queues", "PUT", "/limits", `{"queue":"f","concurrency":4}`},
	{"limits and sharing of queues", "PATCH", "/queues/f", `{"sharing":{"key_tag":"tenant","mode":"fair"}}`},
	{"policies", "PATCH", "/queues/f", `{"policy":{"max_fails":3}}`},
}

// otherFeatures are the others, and why they are not in newFeatures. Tests of the core have all of them.
var otherFeatures = map[string]string{
	"places by number": "of Beanstalk",
	"counts of releases, timeouts, burials and kicks": "off until then",
	"values that a submission chose itself":           "off until then",
	"copies of finished jobs":                         "needs a finished job",
	"jobs submitted with their last failure":          "of Faktory",
	"jobs that have moved by a rule":                  "needs a policy",
	"requests to stop a running job":                  "needs a running job",
	"logs of jobs":                                    "needs a running job",
	"used rates":                                      "off until then",
	"rules that move jobs":                            "of SQS",
	"ends of extended leases":                         "off until then",
	"versions of workers":                             "off until then",
	"ends of jobs that go on in later steps":          "off until then",
}

// TestNewFeaturesAreThoseOfThePage compares the features with the table, which a test of the core compares with the
// formats.
func TestNewFeaturesAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/versions.md")
	check(t, err)
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| \d+ \| ([^|]+) \|`).FindAllStringSubmatch(string(page), -1) {
		listed[row[1]] = true
	}
	asked := map[string]bool{}
	for _, f := range newFeatures {
		asked[f.name] = true
	}
	for name := range listed {
		if asked[name] == (otherFeatures[name] != "") {
			t.Errorf("%s: a request: %v; none because: %q", name, asked[name], otherFeatures[name])
		}
	}
	if len(listed) != len(asked)+len(otherFeatures) {
		t.Errorf("the page lists %d features, %d are tested, %d are not", len(listed), len(asked), len(otherFeatures))
	}
}

// A new leader beside a node of the oldest program that a cluster still works with refuses what that node could not
// store. Once all nodes are upgraded the same requests are accepted, and their effects are the same under each leader.
func TestNothingIsLostBesideTheOldestProgram(t *testing.T) {
	oldest := harness.BinaryBefore(t, "core/internal/record/entry.go", "^const NewestFormat = 3")
	c := prepare(t, nil, "")
	for _, n := range c.nodes { // a cluster starts with the newest format of the node that founds it
		n.Use(oldest)
	}
	c.start()
	c.transfer(2)
	for i := range 2 {
		terminate(t, c.nodes[i])
		c.nodes[i].Use(harness.Binary(t))
		c.restart(i)
	}
	c.transfer(0)
	c.do(0, "POST", "/jobs", `{"queue":"f","id":"base","delay_s":36000,"tags":["t"]}`, nil)
	for _, f := range newFeatures {
		err := c.api(0, f.method, f.path, f.body, nil)
		var refused *refusal
		if !errors.As(err, &refused) || !strings.Contains(refused.text, "not before all nodes of the cluster run") {
			t.Errorf("%s beside the oldest program: %v", f.name, err)
		}
	}
	for _, id := range []string{"wide", "broken", "cost", "window", "deadline"} {
		if c.find(id) {
			t.Errorf("job %s was refused and is there", id)
		}
	}
	c.transfer(2) // the oldest program has everything that was accepted
	if !c.find("base") {
		t.Error("the oldest program lacks a job")
	}
	c.transfer(0)
	if code := terminate(t, c.nodes[2]); code != 0 {
		t.Errorf("exit code %d", code)
	}
	count := func() int { return strings.Count(c.nodes[0].Output(), raised) } // its founding was such a time
	before := count()
	c.nodes[2].Use(harness.Binary(t))
	c.restart(2)
	harness.Eventually(t, func() string {
		if count() == before {
			return "the leader does not raise the format"
		}
		return ""
	})
	for _, f := range newFeatures {
		c.do(0, f.method, f.path, f.body, nil)
	}
	want := c.stored(0)
	for leader := 1; leader < size; leader++ {
		c.transfer(leader)
		if got := c.stored(leader); got != want {
			t.Errorf("n%d leads:\n%s\nwant\n%s", leader+1, got, want)
		}
	}
}

// stored is what the features have stored, as a node shows it.
func (c *cluster) stored(i int) string {
	c.t.Helper()
	var text strings.Builder
	paths := []string{"/jobs/wide", "/jobs/broken", "/jobs/cost", "/jobs/window", "/jobs/deadline", "/limits"}
	for _, path := range paths {
		var shown any
		c.do(i, "GET", path, "", &shown)
		object, is := shown.(map[string]any)
		if is {
			delete(object, "age_s") // it passes
		}
		line, err := json.Marshal(shown)
		check(c.t, err)
		fmt.Fprintf(&text, "%s %s\n", path, line)
	}
	return text.String()
}
