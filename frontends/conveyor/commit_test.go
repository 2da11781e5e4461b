package conveyor

import (
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// overtaken is a broker on which another client connects whenever one is closed, before anything else happens.
type overtaken struct {
	core.Broker
	connect func()
}

func (b *overtaken) Close(id core.ClientID) {
	b.Broker.Close(id)
	if b.connect != nil {
		b.connect()
	}
}

// A client that logs in while replies wait for a commit still gets them, even if another client connects at that
// moment.
func TestALoginKeepsTheRepliesThatWait(t *testing.T) {
	t.Parallel()
	var b *overtaken
	s := frontendtest.Open(t, func(inner core.Broker) frontends.Frontend {
		b = &overtaken{Broker: inner}
		o := Options{}
		o.Password = "secret"
		return New(access.Unrestricted(b, core.Conveyor), o)
	}, frontendtest.NeverCommits)
	c := dial(t, s, "client")
	c.want("OK", "AUTH", "secret")
	b.connect = func() { b.Open(core.ClientOptions{Wake: func() {}}) }
	push := encodeCommand("LPUSH", "conv:queue:q", jobIn(1, "q", "x").encode())
	c.SendBytes(append(push, encodeCommand("AUTH", "secret")...))
	if c.Closed() {
		t.Fatal("the connection is closed")
	}
	s.Broker.(interface{ Flush() }).Flush()
	if got := c.next() + " " + c.next(); got != "1 OK" {
		t.Errorf("got %q", got)
	}
}

// That there is nothing is also an answer: it waits until the removal is durable.
func TestThatAJobIsGoneWaitsForItsCommit(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, plain, frontendtest.NeverCommits)
	flush := s.Broker.(interface{ Flush() }).Flush
	worker := dial(t, s, "worker")
	for _, words := range [][]string{
		{"LPUSH", "conv:queue:q", jobIn(1, "q", "x").encode()},
		{"BRPOP", "conv:queue:q", "0"},
		{"SADD", "conv:worker:active:w", idOf(1)},
	} {
		worker.SendBytes(encodeCommand(words...))
		flush()
		worker.next()
	}
	worker.SendBytes(encodeCommand("SREM", "conv:jobs:active", idOf(1)))
	worker.SendBytes(encodeCommand("DEL", "conv:job:"+idOf(1)))
	asked := []struct {
		client
		words []string
		want  string
	}{
		{words: []string{"GET", "conv:job:" + idOf(1)}, want: "nil"},
		{words: []string{"SPOP", "conv:worker:active:w"}, want: "nil"},
		{words: []string{"SMEMBERS", "conv:jobs:active"}, want: ""},
		{words: []string{"SCARD", "conv:job:" + idOf(1) + ":active"}, want: "0"},
		{words: []string{"SCARD", "conv:jobs:active"}, want: "0"},
		{words: []string{"ZREM", "conv:scheduled", jobIn(1, "q", "x").encode()}, want: "0"},
		{words: []string{"LRANGE", "conv:failed", "0", "-1"}, want: ""},
	}
	for i := range asked {
		a := &asked[i]
		a.client = dial(t, s, a.words[0])
		a.SendBytes(encodeCommand(a.words...))
		if got := a.Unheld(); len(got) > 0 {
			t.Errorf("%q is answered with %q before its commit", a.words, got)
		}
	}
	flush()
	for _, a := range asked {
		if got := a.next(); got != a.want {
			t.Errorf("%q is answered with %q, want %q", a.words, got, a.want)
		}
	}
}

// A message that is refused because of a job says that the job exists: the refusal waits until the job is durable.
func TestARefusedMessageWaitsForTheJobItNames(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	control.Load([]access.Entry{
		{Name: "shop", Grants: []access.Grant{{Role: access.Consume, Queues: []string{"alpha"}}}},
	})
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return New(access.NewGuard(b, control, core.Conveyor, "shop"), Options{})
	}, frontendtest.NeverCommits)
	core.DoOnce(s.Broker, core.Conveyor, &core.Submit{Job: &core.Job{ID: idOf(2), Queue: "secret"}})
	c := dial(t, s, "c")
	c.SendBytes(encodeCommand("PUBLISH", "conv:events", jobIn(2, "alpha", "x").encode()))
	if got := c.Unheld(); len(got) > 0 {
		t.Errorf("answered with %q before the commit of the job", got)
	}
	s.Broker.(interface{ Flush() }).Flush()
	if got := c.next(); !strings.Contains(got, "NOPERM") {
		t.Errorf("got %q", got)
	}
}
