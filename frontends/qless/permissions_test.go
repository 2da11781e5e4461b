package qless

import (
	"strings"
	"testing"

	"broker/core"
	"broker/frontends"
	"broker/frontends/access"
	"broker/frontends/frontendtest"
)

func TestPrincipalsMayDoWhatTheirRolesAllow(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	control.Load([]access.Entry{
		{Name: "producer", TokenSHA256: access.HashToken("p"), Grants: []access.Grant{{Role: access.Produce, Queues: []string{"a*"}}}},
		{Name: "worker", TokenSHA256: access.HashToken("w"), Grants: []access.Grant{{Role: access.Consume}}},
		{Name: "boss", TokenSHA256: access.HashToken("b"), Grants: []access.Grant{{Role: access.Admin}}},
		{Name: "watcher", Grants: []access.Grant{{Role: access.Read}}},
	})
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return started(Options{Access: control})(access.NewGuard(b, control, core.Qless, "watcher"))
	}, frontendtest.InMemory)
	clients := map[string]conn{"watcher": dial(t, s)}
	for name, token := range map[string]string{"producer": "p", "worker": "w", "boss": "b"} {
		c := dial(t, s)
		if got := c.do("AUTH", name, token); got != "OK" {
			t.Fatalf("auth of %s: %s", name, got)
		}
		clients[name] = c
	}
	if got := clients["watcher"].do("AUTH", "boss", "w"); !strings.HasPrefix(got, "-WRONGPASS") {
		t.Errorf("the token of another: %s", got)
	}
	allowed := map[string]string{
		"put 1 me a1 j K {} 0":      "producer boss",
		"put 1 me b1 j2 K {} 0":     "boss",
		"put 2 me a1 j2 K {} 0":     "boss", // out of b1
		"pop 2 a1 w 0":              "worker boss",
		"queues 2":                  "watcher boss",
		"get 2 j":                   "watcher boss",
		"cancel 2 nobody":           "boss",
		"pause 2 a1":                "boss",
		"config.set 2 heartbeat 70": "boss",
		"tag 2 top":                 "watcher boss",
		"tag 2 add j t":             "boss",
		"track 2":                   "watcher boss",
	}
	for _, call := range sortedKeys(allowed) {
		for _, name := range []string{"boss", "producer", "worker", "watcher"} {
			got := clients[name].call(strings.Fields(call)...)
			refused := strings.HasPrefix(got, "-NOPERM")
			if refused == strings.Contains(allowed[call], name) {
				t.Errorf("%s, %s: %s", name, call, got)
			}
		}
	}
	if got := clients["worker"].do("SUBSCRIBE", "ql:log"); !strings.HasPrefix(got, "-NOPERM") {
		t.Errorf("subscribe: %s", got)
	}
	if got := clients["watcher"].do("FLUSHDB"); !strings.HasPrefix(got, "-NOPERM") {
		t.Errorf("flushdb: %s", got)
	}
}

func TestEveryOperationHasAPermission(t *testing.T) {
	t.Parallel()
	for name := range commands {
		if _, there := permissions[name]; !there {
			t.Errorf("%s has none", name)
		}
	}
}
