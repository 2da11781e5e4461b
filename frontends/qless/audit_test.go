package qless

import (
	"fmt"
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// auditStage returns a stage with two principals, and the audit log. "boss" may do everything, "worker" may only work.
func auditStage(t *testing.T) (s *frontendtest.Stage, noted func() []string) {
	t.Helper()
	control := &access.Control{}
	control.Load([]access.Entry{
		{Name: "boss", TokenSHA256: access.HashToken("b"), Grants: []access.Grant{{Role: access.Admin}}},
		{Name: "worker", Grants: []access.Grant{{Role: access.Consume}, {Role: access.Produce}}},
	})
	var changes []string
	s = frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return start(access.NewGuard(b, control, core.Qless, "worker"), Options{
			AllowFlush: true,
			Options: frontends.Options{Namespace: "ns:", Audit: func(c access.Change) {
				changes = append(changes,
					strings.TrimSpace(fmt.Sprintln(c.Who, c.Protocol, c.Action, c.Target, c.Detail)))
			}},
		})
	}, frontendtest.InMemory)
	return s, func() []string {
		all := changes
		changes = nil
		return all
	}
}

// The password of the port gives all rights even if principals are configured, and the audit log names it.
func TestPasswordGrantsAllRights(t *testing.T) {
	t.Parallel()
	var who []string
	for _, entries := range [][]access.Entry{
		nil, {{Name: "boss", TokenSHA256: access.HashToken("b"), Grants: []access.Grant{{Role: access.Read}}}},
	} {
		control := &access.Control{}
		control.Load(entries)
		s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
			return start(access.NewGuard(b, control, core.Qless, ""), Options{
				Options: frontends.Options{Password: "pw", Audit: func(c access.Change) { who = append(who, c.Who) }},
			})
		}, frontendtest.InMemory)
		c := conn{s.Dial("client"), t}
		if got := c.do("AUTH", "pw"); got != "OK" {
			t.Fatalf("auth: %s", got)
		}
		c.do("SCRIPT", "LOAD", scriptStart)
		if got := c.call("pause", "1", "q"); strings.HasPrefix(got, "-") {
			t.Errorf("pause: %s", got)
		}
	}
	if got := strings.Join(who, " "); got != "qless.password qless.password" {
		t.Errorf("audited: %q", got)
	}
}

func TestChangesOfOperatorsAreAudited(t *testing.T) {
	t.Parallel()
	s, noted := auditStage(t)
	c := dial(t, s)
	if got := c.do("AUTH", "boss", "b"); got != "OK" {
		t.Fatalf("auth: %s", got)
	}
	for _, jid := range []string{"j", "k"} {
		c.call("put", "1", "me", "q", jid, "K", "{}", "0")
	}
	c.call("pop", "2", "q", "me", "2")
	for _, step := range []struct{ call, want string }{
		{"pause 3 q r", "boss qless queue.pause ns:q ns:r"},
		{"unpause 3 q r", "boss qless queue.resume ns:q ns:r"},
		{"priority 3 k 7", "boss qless job.priority k 7"},
		{"timeout 3 j", "boss qless job.timeout j"},
		{"unfail 3 q broken", "boss qless jobs.retry ns:q group broken"},
		{"config.set 3 heartbeat 70", "boss qless config.set heartbeat 70"},
		{"config.unset 3 heartbeat", "boss qless config.unset heartbeat"},
		{"cancel 3 j k", "boss qless job.cancel j k"},
		{"queue.forget 3 q", "boss qless queue.remove ns:q"},
		{"queues 3", ""},
		{"put 4 me q l K {} 0", ""},
		{"tag 4 add l t", ""},
		{"timeout 4 nothing", ""}, // refused
	} {
		got := c.call(strings.Fields(step.call)...)
		if all := strings.Join(noted(), ", "); all != step.want {
			t.Errorf("%s (%s): noted %q, want %q", step.call, got, all, step.want)
		}
	}
	c.do("FLUSHDB")
	if all := fmt.Sprint(noted()); all != "[boss qless jobs.flush]" {
		t.Errorf("FLUSHDB: noted %s", all)
	}
}

func TestCallsOfATransactionAreAudited(t *testing.T) {
	t.Parallel()
	s, noted := auditStage(t)
	c := dial(t, s)
	c.do("AUTH", "boss", "b")
	c.do("MULTI")
	c.call("pause", "1", "q")
	if all := noted(); len(all) > 0 {
		t.Errorf("noted before EXEC: %v", all)
	}
	c.do("EXEC")
	if all := fmt.Sprint(noted()); all != "[boss qless queue.pause ns:q]" {
		t.Errorf("noted %s", all)
	}
}

func TestRefusedCallsAreNotAudited(t *testing.T) {
	t.Parallel()
	s, noted := auditStage(t)
	c := dial(t, s)
	if got := c.call("pause", "1", "q"); !strings.HasPrefix(got, "-NOPERM") {
		t.Errorf("a worker has paused a queue: %s", got)
	}
	if all := noted(); len(all) > 0 {
		t.Errorf("noted: %v", all)
	}
}
