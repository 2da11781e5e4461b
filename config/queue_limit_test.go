package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestQueueLimitsAndSharings(t *testing.T) {
	t.Parallel()
	c, err := Load(Sources{File: write(t, "broker.toml", `
[throttles]
mail = {concurrency = 4, rate = 2.5, burst = 3}

[[queue_limit]]
queue = "mail"
type = "Newsletter"
concurrency = 1
timeout = 60

[[queue_limit]]
queue = "mail"
key = "*"
rate = 10

[[queue_limit]]
queue = "mail"
key = "acme"          # no limit

[[sharing]]
queue = "mail"
key = "tag:tenant"
fair = true
weights = {acme = 3}

[[sharing]]
queue = "orders"
key = "tag:customer"
ordered = true
`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(c.Throttles["mail"]); got != `{"burst":3,"concurrency":4,"rate":2.5}` {
		t.Errorf("throttle: %s", got)
	}
	want := []QueueLimit{
		{Queue: "mail", Type: "Newsletter", Members: []byte(`{"concurrency":1,"timeout":60}`)},
		{Queue: "mail", Key: "*", Members: []byte(`{"rate":10}`)},
		{Queue: "mail", Key: "acme", Members: []byte("{}")},
	}
	if !reflect.DeepEqual(c.QueueLimits, want) {
		t.Errorf("limits: %+v", c.QueueLimits)
	}
	if s := []Sharing{
		{Queue: "mail", Key: "tag:tenant", Fair: true, Weights: map[string]int{"acme": 3}},
		{Queue: "orders", Key: "tag:customer", Ordered: true},
	}; !reflect.DeepEqual(c.Sharings, s) {
		t.Errorf("sharings: %+v", c.Sharings)
	}
}

func TestProblemsInQueueLimitsAreReported(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[[queue_limit]]\nqueue = \"q\"\nconcurrency = 1":              "queue_limit[0]: must have either type or key",
		"[[queue_limit]]\ntype = \"T\"\nconcurrency = 1":               "queue_limit[0].queue: missing",
		"[[queue_limit]]\nqueue = \"q\"\nkey = \"*\"\nconcurrency = 1": "queue_limit[0].key: jobs of the queue \"q\" have no key",
		"[throttles]\nq = 4":                                                                         "throttles.q: must be written as {",
		"[queue_limit]\nqueue = \"q\"":                                                               "must be written as [[queue_limit]]",
		"[[sharing]]\nqueue = \"q\"\nkey = \"tenant\"":                                               "sharing[0].key: \"tenant\" is not",
		"[[sharing]]\nqueue = \"q\"\nkey = \"unique\"\nordered = true":                               "sharing[0].ordered: needs a key tag:NAME",
		"[[sharing]]\nkey = \"unique\"":                                                              "sharing[0].queue: missing",
		"[[sharing]]\nqueue = \"q\"\nkey = \"unique\"\nweights = {a = 1}":                            "sharing[0].weights: need fair",
		"[[sharing]]\nqueue = \"q\"\nkey = \"unique\"\nfair = true\nweights = {a = 0}":               "sharing[0].weights.a: 0 is not between",
		"[[sharing]]\nqueue = \"q\"\nkey = \"unique\"\n[[sharing]]\nqueue = \"q\"\nkey = \"unique\"": "sharing[1].queue: \"q\" has another",
		"[[queue_limit]]\nqueue = \"q\"\ntype = \"T\"\n[[queue_limit]]\nqueue = \"q\"\ntype = \"T\"": "queue_limit[1]: occurs twice",
	} {
		if _, err := Load(Sources{File: write(t, "broker.toml", text)}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
