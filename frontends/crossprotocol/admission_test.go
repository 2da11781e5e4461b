package crossprotocol

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/beanstalk"
	"broker/frontends/frontendtest"
)

// unfinished begins a request with a large body, by protocol.
var unfinished = map[string]string{
	"Workq":     "add 6ba7b810-9dad-41d1-80b4-00c04fd430c4 ping 1000 60000 1000000\r\n",
	"Gearman":   "\x00REQ" + string(binary.BigEndian.AppendUint32([]byte{0, 0, 0, submitJobBg}, 1000000)),
	"Faktory":   "PUSH ",
	"Qless":     "*2\r\n$4\r\nECHO\r\n$1000000\r\n",
	"Conveyor":  "*2\r\n$4\r\nECHO\r\n$1000000\r\n",
	"Beanstalk": "put 0 0 60 1000000\r\n",
}

// dismissals are the replies to a client without rights that sends too much.
var dismissals = map[string]string{
	"Workq":     "-CLIENT-ERROR Not allowed: too much input from a client without rights\r\n",
	"Gearman":   "NOT_ALLOWED\x00too much input from a client without rights",
	"Faktory":   "-ERR too much input from a client without rights\r\n",
	"Qless":     "-NOAUTH too much input from a client without rights\r\n",
	"Conveyor":  "-NOAUTH too much input from a client without rights\r\n",
	"Beanstalk": "UNKNOWN_COMMAND\r\n",
}

// guardedStage has a front-end whose port gives its clients a principal with a role; empty: a principal without roles.
func guardedStage(t *testing.T, p *rolePort, role string) *frontendtest.Stage {
	t.Helper()
	control, entry := &access.Control{}, access.Entry{Name: "p"}
	if role != "" {
		entry.Grants = []access.Grant{{Role: access.Produce}}
	}
	control.Load([]access.Entry{entry})
	return frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return p.make(access.NewGuard(b, control, p.protocol, "p"))
	}, frontendtest.InMemory)
}

func TestAClientWithoutRightsIsDismissedInItsProtocol(t *testing.T) {
	t.Parallel()
	for _, p := range rolePorts() {
		if p.ask != nil {
			continue // net/http reads no body before the credentials
		}
		if p.protocol == core.Beanstalk { // whose default allows smaller bodies only
			p.make = func(b *access.Guard) frontends.Frontend {
				return beanstalk.New(b, beanstalk.Options{Options: frontends.Options{MaxBodyBytes: 1 << 20}})
			}
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, role := range []string{"", "produce"} {
				stage := guardedStage(t, &p, role)
				c := stage.Dial("client")
				c.Send(p.greet)
				c.Rest()
				c.SendIn(4096, []byte(unfinished[p.name]+strings.Repeat("x", frontends.MaxInputWithoutRights)))
				got := string(c.Rest())
				switch {
				case role == "" && (!strings.HasSuffix(got, dismissals[p.name]) || !c.Closed()):
					t.Errorf("without rights it receives %q, closed: %v", got, c.Closed())
				case role != "" && (got != "" || c.Closed()):
					t.Errorf("with a right it receives %q, closed: %v", got, c.Closed())
				}
			}
		})
	}
}

// A client whose port gives it a principal may connect early and stay silent. Where it has to log in, it has ten
// seconds, and two for Faktory's HELLO.
func TestOnlyClientsThatHaveToLogInHaveADeadline(t *testing.T) {
	t.Parallel()
	within := map[string]time.Duration{
		"Qless": 10 * time.Second, "Conveyor": 10 * time.Second, "Faktory": 2 * time.Second,
	}
	for _, p := range rolePorts() {
		if p.ask != nil {
			continue // the timeouts of net/http
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, role := range []string{"", "produce"} {
				stage := guardedStage(t, &p, role)
				silent := stage.Dial("client")
				silent.Rest()
				limit, mustLogIn := within[p.name]
				if mustLogIn = mustLogIn && (role == "" || p.name == "Faktory"); !mustLogIn {
					stage.Advance(time.Hour)
					if got := silent.Rest(); len(got) > 0 || silent.Closed() {
						t.Errorf("with the role %q: closed after %q", role, got)
					}
					continue
				}
				stage.Advance(limit - time.Millisecond)
				if silent.Closed() {
					t.Errorf("with the role %q it is closed before its time", role)
				}
				stage.Advance(time.Millisecond)
				if got := string(silent.Rest()); !strings.Contains(got, frontends.DismissLogin) || !silent.Closed() {
					t.Errorf("with the role %q it receives %q, closed: %v", role, got, silent.Closed())
				}
			}
		})
	}
}
