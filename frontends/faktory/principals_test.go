package faktory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// withPrincipals opens a stage on which each principal has its name as its password.
func withPrincipals(t *testing.T, roles map[string]access.Role) (*frontendtest.Stage, *access.Control) {
	t.Helper()
	control := &access.Control{}
	var entries []access.Entry
	for name, role := range roles {
		entries = append(entries, access.Entry{Name: name, FaktoryPassword: name, Grants: []access.Grant{{Role: role}}})
	}
	control.Load(entries)
	return frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return onStage(access.NewGuard(b, control, core.Faktory, ""), Options{})
	}), control
}

// sendHello opens a connection and sends HELLO with a password.
func sendHello(s *frontendtest.Stage, name, password, wid string) *frontendtest.Client {
	c := s.Dial(name)
	var hi struct {
		I int
		S string
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(c.ReadUntil("\r\n"), "+HI ")), &hi); err != nil {
		panic(err)
	}
	c.Send(fmt.Sprintf("HELLO {\"wid\":%q,\"pwdhash\":%q,\"v\":2}\r\n", wid, passwordHash(password, hi.S, hi.I)))
	return c
}

// A client that knows a worker's id can neither stop the worker nor impersonate it.
func TestAWorkerBelongsToItsPrincipal(t *testing.T) {
	t.Parallel()
	s, control := withPrincipals(t, map[string]access.Role{
		"mailer": access.Consume, "stranger": access.Consume, "boss": access.Operate,
	})
	first := sendHello(s, "first", "mailer", "w1")
	first.Want("+OK\r\n")
	stranger := sendHello(s, "stranger", "stranger", "w2")
	stranger.Want("+OK\r\n")

	stranger.Send("BEAT {\"wid\":\"w1\",\"current_state\":\"terminate\"}\r\n")
	stranger.Want("-ERR not allowed\r\n")
	thief := sendHello(s, "thief", "stranger", "w1")
	thief.Want("-ERR worker id belongs to another client\r\n")
	thief.WantClosed()
	if n := control.Refusals(core.Faktory); n != 2 {
		t.Errorf("%d refusals were counted, want 2", n)
	}
	stranger.Send("BEAT {\"wid\":\"w2\"}\r\nBEAT {\"wid\":\"w3\"}\r\n")
	stranger.Want("+OK\r\n-ERR unknown worker w3\r\n")

	// The process of the worker has several connections, and some of them send no wid.
	second, producer := sendHello(s, "second", "mailer", "w1"), sendHello(s, "producer", "mailer", "")
	second.Want("+OK\r\n")
	producer.Want("+OK\r\n")
	for _, c := range []*frontendtest.Client{first, second, producer} {
		c.Send("BEAT {\"wid\":\"w1\"}\r\n")
		c.Want("+OK\r\n")
	}
	operator := sendHello(s, "operator", "boss", "")
	operator.Want("+OK\r\n")
	operator.Send("BEAT {\"wid\":\"w1\",\"current_state\":\"quiet\"}\r\n")
	operator.Want("$17\r\n{\"state\":\"quiet\"}\r\n")
	first.Send("BEAT {\"wid\":\"w1\"}\r\n")
	first.Want("$17\r\n{\"state\":\"quiet\"}\r\n")

	// After the worker has disconnected, its id is free.
	first.Hangup()
	second.Hangup()
	next := sendHello(s, "next", "stranger", "w1")
	next.Want("+OK\r\n")
}

// A reload that configures principals does not stop connected workers.
func TestWorkersStayAcrossAReloadOfPrincipals(t *testing.T) {
	t.Parallel()
	s, control := withPrincipals(t, nil)
	old := dial(s, "old", "w1")
	control.Load([]access.Entry{{
		Name: "mailer", FaktoryPassword: "mailer", Grants: []access.Grant{{Role: access.Consume}},
	}})
	old.Send("BEAT {\"wid\":\"w1\"}\r\n")
	old.Want("+OK\r\n")
	fresh := sendHello(s, "fresh", "mailer", "w2")
	fresh.Want("+OK\r\n")
	control.Load([]access.Entry{{Name: "other", FaktoryPassword: "x"}})
	control.Load([]access.Entry{{
		Name: "mailer", FaktoryPassword: "mailer", Grants: []access.Grant{{Role: access.Consume}},
	}})
	again := sendHello(s, "again", "mailer", "w2")
	again.Want("+OK\r\n")
}

// A worker with the role consume alone learns that its job is cancelled, and its heartbeats are not counted as refused.
func TestAWorkerIsAskedToStopItsJobWithoutTheRoleRead(t *testing.T) {
	t.Parallel()
	s, control := withPrincipals(t, map[string]access.Role{"worker": access.Consume, "other": access.Consume})
	b := s.Broker
	job := core.Ref{Seq: core.DoOnce(b, core.Internal,
		&core.Submit{Tag: 1, Job: &core.Job{ID: "j1", Queue: "q", Body: []byte("[]"), Format: core.Args}})[0].Seq}
	c, other := sendHello(s, "worker", "worker", "w1"), sendHello(s, "other", "other", "w2")
	c.Want("+OK\r\n")
	other.Want("+OK\r\n")
	c.Send("FETCH q\r\n")
	c.ReadUntil("\r\n")
	c.ReadUntil("\r\n")
	core.DoOnce(b, core.Internal, &core.Cancel{Ref: job, Running: core.RunningSignal})
	c.Send("BEAT {\"wid\":\"w1\"}\r\n")
	c.Want("$17\r\n{\"cancel\":[\"j1\"]}\r\n")
	other.Send("BEAT {\"wid\":\"w2\"}\r\n")
	other.Want("+OK\r\n")
	if n := control.Refusals(core.Faktory); n != 0 {
		t.Errorf("%d refusals were counted", n)
	}
}
