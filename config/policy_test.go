package config

import (
	"strings"
	"testing"
)

func TestPoliciesOfQueuesAndTypesAreRead(t *testing.T) {
	t.Parallel()
	c, err := Load(Sources{File: write(t, "broker.toml", `
[[queue_policy]]
queue = "mail"
max_fails = 5
backoff = [10, 60.5]
on_exhausted = {move = "mail-dead"}

[[type_policy]]
type = "Report"
backoff = {kind = "exponential", base_s = 2, jitter = 0.5}
`)})
	if err != nil {
		t.Fatal(err)
	}
	if p := c.QueuePolicies; len(p) != 1 || p[0].Name != "mail" ||
		string(p[0].Members) != `{"backoff":[10,60.5],"max_fails":5,"on_exhausted":{"move":"mail-dead"}}` {
		t.Errorf("policies of queues: %q", p)
	}
	if p := c.TypePolicies; len(p) != 1 || p[0].Name != "Report" ||
		string(p[0].Members) != `{"backoff":{"base_s":2,"jitter":0.5,"kind":"exponential"}}` {
		t.Errorf("policies of types: %q", p)
	}
}

func TestProblemsInPoliciesAreReported(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[queue_policy]\nqueue = \"q\"\nmax_fails = 1":                                               "must be written as [[queue_policy]]",
		"[[queue_policy]]\nmax_fails = 1":                                                            "queue_policy[0].queue: the name of the queue is missing",
		"[[type_policy]]\ntype = 7\nmax_fails = 1":                                                   "type_policy[0].type: the name of the type is missing",
		"[[type_policy]]\ntype = \"T\"":                                                              "type_policy[0]: has no members",
		"[[type_policy]]\ntype = \"T\"\nlease_for_s=nan":                                             "type_policy[0]: json: unsupported value",
		"[[type_policy]]\ntype = \"T\"\nmax_fails = 1\n[[type_policy]]\ntype = \"T\"\nmax_fails = 2": "type_policy[1].type: \"T\" has another policy",
	} {
		if _, err := Load(Sources{File: write(t, "broker.toml", text)}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
