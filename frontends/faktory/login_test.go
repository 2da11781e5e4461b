package faktory

import (
	"testing"
	"time"

	"broker/access"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// stop keeps a queue from running logins until the returned function is called.
func (q *loginQueue) stop() (resume func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = true
	return func() { go q.work() }
}

func TestPasswordsAreCheckedOffTheEventLoop(t *testing.T) {
	t.Parallel()
	s, f := stageWith(t, Options{Options: frontends.Options{Password: "secret"}})
	served := sendHello(s, "served", "secret", "")
	served.Want("+OK\r\n")
	resume := f.logins.prompt.stop()
	waiting, gone := sendHello(s, "waiting", "secret", "w"), sendHello(s, "gone", "secret", "")
	waiting.Send("BEAT {\"wid\":\"w\"}\r\n")
	waiting.WantSilence()
	served.Send("QUEUE LATENCY x\r\n")
	served.Want("$7\r\n{\"x\":0}\r\n")
	s.Advance(2 * handshakeFor) // the client has sent its HELLO in time
	gone.Hangup()
	resume()
	waiting.Want("+OK\r\n+OK\r\n")
	if n := f.connections.Load(); n != 2 {
		t.Errorf("%d connections are served, want 2", n)
	}
}

// Logins from an address with too many failures run after all others, but the right password is always accepted.
func TestFailedLoginsOfHELLOAreCounted(t *testing.T) {
	t.Parallel()
	s, f := stageWith(t, Options{Options: frontends.Options{Password: "secret"}})
	for range access.LoginBurst {
		missing := s.Dial("missing")
		missing.ReadUntil("\r\n")
		missing.Send("HELLO {}\r\n")
		missing.Want("-ERR Invalid password\r\n")
		wrong := sendHello(s, "wrong", "guess", "")
		wrong.Want("-ERR Invalid password\r\n")
		wrong.WantClosed()
	}
	if f.broker.Control().Logins().Wait("127.0.0.1:1", "", s.Broker.Now()) == 0 {
		t.Fatal("failed logins are not counted for the other protocols")
	}
	wrong := sendHello(s, "wrong", "guess", "")
	wrong.Want("-ERR too many failed logins\r\n")
	wrong.WantClosed()
	right := sendHello(s, "right", "secret", "")
	right.Want("+OK\r\n")

	const limit = 5
	f.logins.throttled.limit = limit
	resume := f.logins.throttled.stop()
	var waiting []*frontendtest.Client
	for range limit {
		waiting = append(waiting, sendHello(s, "waiting", "secret", ""))
	}
	extra := sendHello(s, "extra", "secret", "")
	extra.Want("-ERR too many failed logins\r\n")
	extra.WantClosed()
	s.Advance(time.Minute) // now the address need not wait
	prompt := sendHello(s, "prompt", "secret", "")
	prompt.Want("+OK\r\n")
	resume()
	waiting[limit-1].Want("+OK\r\n")
}
