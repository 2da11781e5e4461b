//go:build nightly

package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"broker/integration/harness"
)

// feature is a request that stores what the oldest program does not know.
type feature struct{ name, method, path, body string }

// newFeatures are the features that clients ask for, as docs/versions.md lists them.
var newFeatures = []feature{
	{"a wide priority", "POST", "/jobs", `{"queue":"f","id":"wide","priority":4294967295}`},
	{"on_broken", "POST", "/jobs", `{"queue":"f","id":"broken","after":["base"],"on_broken":"drop"}`},
	{"cost", "POST", "/jobs", `{"queue":"f","id":"cost","cost":7}`},
	{
		"a unique window", "POST", "/jobs",
		`{"queue":"f","id":"window","unique_key":"k","unique_for_s":3600,"unique_until":"window"}`,
	},
	{"a shared limit", "PUT", "/limits", `{"name":"both","queues":["f","g"],"concurrency":3}`},
	{"a limit", "PUT", "/limits", `{"queue":"f","concurrency":4}`},
	{"sharing", "PATCH", "/queues/f", `{"sharing":{"key_tag":"tenant","mode":"fair"}}`},
	{"a policy", "PATCH", "/queues/f", `{"policy":{"max_fails":3}}`},
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
	for _, id := range []string{"wide", "broken", "cost", "window"} {
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
	c.nodes[2].Use(harness.Binary(t))
	c.restart(2)
	c.logs(0, raised)
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
	for _, path := range []string{"/jobs/wide", "/jobs/broken", "/jobs/cost", "/jobs/window", "/limits"} {
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
