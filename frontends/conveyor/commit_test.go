package conveyor

import (
	"testing"

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
		return New(b, o)
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
