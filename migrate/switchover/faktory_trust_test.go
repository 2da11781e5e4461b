package switchover

import (
	"strings"
	"testing"
	"time"
)

// The switch knows the broker's password, and the client must not: it is as trusted as the server says.
func TestFaktoryClientsReachTheBrokerOnceTheServerHasAcceptedThem(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"without HELLO":         "",
		"with a wrong password": "HELLO {\"pwdhash\":\"wrong\",\"v\":2,\"wid\":\"w1\"}\r\n",
	} {
		for _, request := range []string{
			"PUSH {\"jid\":\"a\",\"queue\":\"mail\"}\r\n", "PUSHB [{\"jid\":\"a\",\"queue\":\"mail\"}]\r\n",
			"FETCH mail\r\n",
			"ACK {\"jid\":\"a\"}\r\n", "BEAT {\"wid\":\"w1\"}\r\n",
		} {
			r := setup(t, "faktory")
			r.cutOver("mail")
			client, server := r.join()
			server.send(faktoryHi)
			client.want(faktoryHi)
			client.send(first + request)
			if first != "" {
				server.want(first)
				server.send("-ERR Invalid password\r\n")
				client.want("-ERR Invalid password\r\n")
			}
			server.want(request) // and the server refuses it
			server.send("-ERR not welcome\r\n")
			client.want("-ERR not welcome\r\n")
			// of an open listener
			_ = r.broker.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(50 * time.Millisecond))
			if conn, err := r.broker.Accept(); err == nil {
				_ = conn.Close() // it should not be there
				t.Errorf("%s: %q reaches the broker", name, request)
			}
		}
	}
}

func TestOwnersIgnoreLongIDs(t *testing.T) {
	t.Parallel()
	o := newOwners(10)
	o.set(strings.Repeat("x", maxName+1), true)
	o.set("short", true)
	if len(o.new) != 1 {
		t.Errorf("%d names are kept", len(o.new))
	}
}

// A broker waits two seconds for HELLO. A shadow that did not run meanwhile connects again.
func TestAHelloThatCameTooLateIsSaidAgain(t *testing.T) {
	t.Parallel()
	r := setup(t, "faktory")
	cut := make(chan error, 1)
	go func() { cut <- r.CutOver("mail") }()
	late := r.atBroker()
	late.send(faktoryHi)
	late.want("HELLO {")
	_ = late.Close()
	broker := r.atBroker()
	broker.send(faktoryHi)
	broker.want("HELLO {")
	broker.send(faktoryOK)
	if err := <-cut; err != nil {
		t.Error(err)
	}
}
