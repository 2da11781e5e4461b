package qless

import (
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

func TestPrincipalsMayDoWhatTheirRolesAllow(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	control.Load([]access.Entry{
		{
			Name: "producer", TokenSHA256: access.HashToken("p"),
			Grants: []access.Grant{{Role: access.Produce, Queues: []string{"a*"}}},
		},
		{Name: "worker", TokenSHA256: access.HashToken("w"), Grants: []access.Grant{{Role: access.Consume}}},
		{Name: "boss", TokenSHA256: access.HashToken("b"), Grants: []access.Grant{{Role: access.Admin}}},
		{Name: "watcher", Grants: []access.Grant{{Role: access.Read}}},
	})
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return start(access.NewGuard(b, control, core.Qless, "watcher"), Options{})
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
		for _, name := range []string{"producer", "worker", "watcher", "boss"} {
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

// A call needs the role for every queue that it affects, not only for the queue in its arguments.
func TestCallNeedsTheRoleForEveryAffectedQueue(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	only := func(r access.Role) access.Grant { return access.Grant{Role: r, Queues: []string{"mine"}} }
	control.Load([]access.Entry{
		{Name: "tenant", TokenSHA256: access.HashToken("t"), Grants: []access.Grant{
			only(access.Produce), only(access.Consume), only(access.Operate),
		}},
		{Name: "boss", TokenSHA256: access.HashToken("b"), Grants: []access.Grant{{Role: access.Admin}}},
	})
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return start(access.NewGuard(b, control, core.Qless, ""), Options{})
	}, frontendtest.InMemory)
	boss, tenant := dial(t, s), dial(t, s)
	boss.do("AUTH", "b")
	tenant.do("AUTH", "t")
	const recurring = "recur 1 yours daily K {} interval 60 0"
	for _, call := range []string{
		recurring, "recur 1 mine own K {} interval 60 0",
		"put 1 me yours theirs K {} 0", "put 1 me yours broken K {} 0", "put 1 me mine job K {} 0",
		"put 1 me mine bad K {} 0",
		"put 1 me mine blocker K {} 0", `put 1 me mine child K {} 0 depends ["blocker"]`,
		`put 1 me mine held K {} 0 depends ["theirs"]`,
	} {
		if got := boss.call(strings.Fields(call)...); strings.HasPrefix(got, "-") {
			t.Fatalf("%s: %s", call, got)
		}
	}
	for _, failing := range [][2]string{{"mine", "bad"}, {"yours", "broken"}} { // the older job is mine
		boss.call("priority", "2", failing[1], "100")
		boss.call("pop", "2", failing[0], "w", "1")
		boss.want(failing[1], "fail", "2", failing[1], "w", "group", "message")
	}
	for _, row := range []struct {
		call    string
		allowed bool
	}{
		{"recur 2 mine daily K {} interval 60 0", false}, // would replace the definition
		{"recur 2 mine own K {} interval 30 0", true},
		{"recur.update 2 own queue yours", false},
		{"recur.update 2 own priority 1 queue yours", false},
		{"recur.update 2 own priority 1 queue mine", true},
		{"recur.update 2 daily queue mine", false},
		{"unfail 2 mine group 10", false}, // one of the two jobs is in another queue
		{"unfail 2 mine group 1", true},
		{"depends 2 child on theirs", false},
		{"depends 2 held off theirs", false},
		{"depends 2 child on job", true},
		{"depends 2 child off all", true},
		{`put 2 me mine new K {} 0 depends ["theirs"]`, false},
		{`put 2 me mine new K {} 0 depends ["job"]`, true},
		{"put 2 me mine theirs K {} 0", false},
		{"requeue 2 me mine theirs K {} 0", false},
		{"retry 2 theirs mine w", false},
	} {
		got := tenant.call(strings.Fields(row.call)...)
		if refused := strings.HasPrefix(got, "-NOPERM"); refused == row.allowed {
			t.Errorf("%s: %s", row.call, got)
		}
	}
	boss.want("theirs", "put", "3", "me", "mine", "theirs", "K", "{}", "0")
	if got := boss.call("get", "3", "theirs"); !strings.Contains(got, `"queue":"mine"`) {
		t.Errorf("after a put into another queue: %s", got)
	}
}

func TestFailedAUTHCountsAsFailedLogin(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, started(Options{Options: frontends.Options{Password: "secret"}}), frontendtest.InMemory)
	const wrong = "-WRONGPASS invalid username-password pair or user is disabled."
	c := conn{s.Dial("client"), t}
	for i := range access.LoginBurst {
		if got := c.do("AUTH", "guess"); got != wrong {
			t.Fatalf("guess %d: %s", i, got)
		}
	}
	if s.Front.(*Frontend).broker.Control().Logins().Wait("127.0.0.1:1", "", s.Broker.Now()) == 0 {
		t.Error("failed logins are not counted for the other protocols")
	}
	right := conn{s.Dial("right"), t}
	if got := right.do("AUTH", "secret"); got != "OK" {
		t.Errorf("the right password: %s", got)
	}
	if got := c.do("AUTH", "guess"); got != wrong {
		t.Errorf("one guess more: %s", got)
	}
	c.WantClosed()
}

func TestRoutedJobNeedsTheRoleForItsNewQueue(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	control.Load([]access.Entry{{Name: "shop", Grants: []access.Grant{{Role: access.Produce, Queues: []string{"a*"}}}}})
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		o := Options{}
		o.Route = func(queue, typ string) (string, string) {
			if typ == "Special" {
				return "secret", typ
			}
			return queue, typ
		}
		return start(access.NewGuard(b, control, core.Qless, "shop"), o)
	}, frontendtest.InMemory)
	c := dial(t, s)
	for call, refused := range map[string]bool{
		"put 1 me a1 j1 K {} 0": false, "put 1 me a1 j2 Special {} 0": true, "requeue 1 me a1 j1 Special {} 0": true,
		"recur 1 a1 r1 Special {} interval 60 0": true,
	} {
		if got := c.call(strings.Fields(call)...); strings.HasPrefix(got, "-NOPERM") != refused {
			t.Errorf("%s: %s", call, got)
		}
	}
	c.call("recur", "1", "a1", "r2", "K", "{}", "interval", "60", "0")
	if got := c.call("recur.update", "1", "r2", "klass", "Special"); !strings.HasPrefix(got, "-NOPERM") {
		t.Errorf("recur.update: %s", got)
	}
}

// A reload may take the right to read from a subscriber, or change its secret: it gets no messages from then on.
func TestSubscriberThatMayNoLongerReadGetsNoMessages(t *testing.T) {
	t.Parallel()
	other := access.Entry{
		Name: "boss", TokenSHA256: access.HashToken("boss"), Grants: []access.Grant{{Role: access.Operate}},
	}
	frontendtest.LosingRead(t, other, func(t *testing.T, control *access.Control, reload func()) {
		s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
			return start(access.NewGuard(b, control, core.Qless, ""), Options{})
		}, frontendtest.InMemory)
		reader, boss := conn{s.Dial("reader"), t}, conn{s.Dial("boss"), t}
		for _, step := range []struct {
			c             conn
			command, want string
		}{
			{reader, "AUTH reader old", "OK"},
			{reader, "SUBSCRIBE ql:log", "[subscribe ql:log :1]"},
			{reader, "PSUBSCRIBE ql:*", "[psubscribe ql:* :2]"},
			{boss, "AUTH boss boss", "OK"},
			{boss, "PUBLISH ql:log first", ":2"},
		} {
			if got := step.c.do(strings.Fields(step.command)...); got != step.want {
				t.Fatalf("%s: %s", step.command, got)
			}
		}
		for _, want := range []string{"[message ql:log first]", "[pmessage ql:* ql:log first]"} {
			if got := reader.reply(); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
		reload()
		if got := boss.do("PUBLISH", "ql:log", "second"); got != ":2" {
			t.Errorf("publish: %s", got)
		}
		if got := reader.do("PING"); got != "[pong ]" {
			t.Errorf("it gets %s", got)
		}
	})
}
