package faktory

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// stageWith opens a stage with the given options.
func stageWith(t testing.TB, o Options) (*frontendtest.Stage, *Frontend) {
	t.Helper()
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return onStage(access.Unrestricted(b, core.Faktory), o)
	})
	return s, s.Front.(*Frontend)
}

func TestPasswordIsChecked(t *testing.T) {
	t.Parallel()
	s, _ := stageWith(t, Options{Options: frontends.Options{Password: "secret"}})
	salts := map[string]bool{}
	for _, c := range []struct {
		name  string
		hello func(salt string, rounds int) string
		in    bool
	}{
		{"right", func(salt string, n int) string {
			return fmt.Sprintf(`{"pwdhash":%q,"v":2}`, passwordHash("secret", salt, n))
		}, true},
		{"right for version 1", func(salt string, _ int) string {
			return fmt.Sprintf(`{"pwdhash":%q}`, passwordHash("secret", salt, 1))
		}, true},
		{"wrong", func(salt string, n int) string {
			return fmt.Sprintf(`{"pwdhash":%q,"v":2}`, passwordHash("secreT", salt, n))
		}, false},
		{"one round too few", func(salt string, n int) string {
			return fmt.Sprintf(`{"pwdhash":%q,"v":2}`, passwordHash("secret", salt, n-1))
		}, false},
		{"missing", func(string, int) string { return `{"v":2}` }, false},
	} {
		conn := s.Dial(c.name)
		var hi struct {
			V, I int
			S    string
		}
		line := conn.ReadUntil("\r\n")
		text, ok := strings.CutPrefix(line, "+HI ")
		if err := json.Unmarshal([]byte(text), &hi); !ok || err != nil || hi.V != 2 || hi.I < 4000 || hi.I > 8095 ||
			salts[hi.S] {
			t.Fatalf("%s: greeted with %q (%v)", c.name, line, err)
		}
		salts[hi.S] = true
		conn.Send("HELLO " + c.hello(hi.S, hi.I) + "\r\n")
		if c.in {
			conn.Want("+OK\r\n")
			continue
		}
		conn.Want("-ERR Invalid password\r\n")
		conn.WantClosed()
	}
}

func TestConnectionsBeyondTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	s, _ := stageWith(t, Options{MaxConnections: 2})
	first, second := dial(s, "first", ""), dial(s, "second", "w")
	third := dial(s, "third", "w")
	third.Want("-ERR too many connections: 3\r\n")
	third.WantClosed()
	first.Hangup()
	dial(s, "fourth", "").WantSilence()
	second.Send("BEAT {\"wid\":\"w\"}\r\n")
	second.Want("+OK\r\n")
}

func TestOverflowIsAGreetingAndAnError(t *testing.T) {
	t.Parallel()
	_, f := stageWith(t, Options{})
	if got := string(f.Overflow()); got != "+HI {\"v\":2}\r\n-ERR too many connections\r\n" {
		t.Errorf("got %q", got)
	}
}

func TestShutdownRefusesTheNextLine(t *testing.T) {
	t.Parallel()
	s, f := stageWith(t, Options{})
	c, fresh := dial(s, "client", ""), s.Dial("fresh")
	f.Shutdown()
	c.WantSilence()
	c.Send("PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"args\":[]}\r\nINFO\r\n")
	c.Want("-ERR shutdown in progress\r\n")
	c.WantClosed()
	fresh.Want("+HI {\"v\":2}\r\n")
	fresh.Send("HELLO {}\r\n")
	fresh.Want("-ERR shutdown in progress\r\n")
	fresh.WantClosed()
}

func TestLineBeyondTheLimitIsRefusedAndDropped(t *testing.T) {
	t.Parallel()
	s, _ := stageWith(t, Options{})
	c := dial(s, "client", "")
	c.SendIn(1000, []byte("PUSH {\"jid\":\""+strings.Repeat("j", 300<<10)+"\"}\r\nQUEUE LATENCY x\r\n"))
	c.Want("-ERR line is longer than 262144 bytes\r\n$7\r\n{\"x\":0}\r\n")
	// As long as allowed.
	head, tail := "PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"args\":[\"", "\"]}"
	c.SendIn(64<<10, []byte(head+strings.Repeat("a", 256<<10-len(head)-len(tail))+tail+"\r\n"))
	c.Want("+OK\r\n")
	early := s.Dial("early")
	early.Want("+HI {\"v\":2}\r\n")
	early.SendIn(1000, []byte("HELLO {\"wid\":\""+strings.Repeat("w", 70<<10)))
	early.Want("-ERR line is longer than 65536 bytes\r\n")
	early.WantClosed()
}

func TestLongLinesAreForJobsOnly(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return New(access.Unrestricted(b, core.Faktory), Options{})
	})
	c := dial(s, "client", "")
	long := strings.Repeat("x", 2<<20)
	for _, line := range []string{`FAIL {"jid":"` + long, `FETCH ` + long, `BATCH NEW {"description":"` + long, long} {
		c.SendIn(256<<10, []byte(line+"\r\n"))
		c.Want("-ERR line is longer than 1048576 bytes\r\n")
	}
	c.SendIn(256<<10, []byte(`PUSH {"jid":"12345678","jobtype":"x","args":["`+long+"\"]}\r\n"))
	c.Want("+OK\r\n")
	c.Send("FETCH default\r\n")
	object(t, c)
	c.SendIn(256<<10,
		[]byte(`ACK {"jid":"12345678","result":"`+long+"\"}\r\nPUSHB [null"+strings.Repeat(",null", 300_000)+"]\r\n"))
	c.Want("+OK\r\n-ERR more than 100000 jobs in one PUSHB\r\n")
}

func TestWorkersAreListedAndStopped(t *testing.T) {
	t.Parallel()
	s, f := stageWith(t, Options{})
	a := s.Dial("a")
	a.Want("+HI {\"v\":2}\r\n")
	a.Send("HELLO {\"wid\":\"w1\",\"hostname\":\"h\",\"pid\":7,\"labels\":[\"x\"],\"username\":\"u\",\"v\":2}\r\n")
	a.Want("+OK\r\n")
	b := dial(s, "b", "w1")
	dial(s, "c", "w0")
	s.Advance(time.Second)
	a.Send("BEAT {\"wid\":\"w1\",\"rss_kb\":99}\r\n")
	a.Want("+OK\r\n")
	rows := f.Workers()
	if len(rows) != 2 || rows[0].WID != "w0" {
		t.Fatalf("%+v", rows)
	}
	w := rows[1]
	if w.WID != "w1" || w.Hostname != "h" || w.PID != 7 || w.Username != "u" || w.Labels[0] != "x" ||
		w.ProtocolVersion != 2 ||
		w.State != "running" || w.Connections != 2 || w.RSSKB != 99 || w.BeatAt.Sub(w.StartedAt) != time.Second ||
		w.RemoteAddr == "" {
		t.Errorf("%+v", w)
	}

	a.Send("PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"args\":[]}\r\n")
	a.Want("+OK\r\n")
	if err := f.SetWorkerState("w1", "quiet"); err != nil {
		t.Fatal(err)
	}
	b.Send("FETCH default\r\n")
	s.Advance(2 * time.Second)
	b.Want("$-1\r\n")
	a.Send("BEAT {\"wid\":\"w1\"}\r\n")
	a.Want("$17\r\n{\"state\":\"quiet\"}\r\n")
	if err := f.SetWorkerState("w1", "terminate"); err != nil {
		t.Fatal(err)
	}
	a.Send("BEAT {\"wid\":\"w1\"}\r\n")
	a.Want("$21\r\n{\"state\":\"terminate\"}\r\n")
	if got := f.Workers()[1].State; got != "terminate" {
		t.Errorf("state is %s", got)
	}
	if err := f.SetWorkerState("w9", "quiet"); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("unknown worker: %v", err)
	}
	for _, state := range []string{"run", "", "Quiet"} {
		if err := f.SetWorkerState("w1", state); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("state %q: %v", state, err)
		}
	}
}

// A parked FETCH of a worker that is told to go quiet gets no job. The replies before it are not lost.
func TestQuietEndsAParkedFetch(t *testing.T) {
	t.Parallel()
	s, f := stageWith(t, Options{})
	worker, producer := dial(s, "worker", "w1"), dial(s, "producer", "")
	worker.Send("PUSH {\"jid\":\"12345678\",\"queue\":\"other\",\"jobtype\":\"x\",\"args\":[]}\r\nFETCH q\r\n")
	worker.Want("+OK\r\n")
	s.Advance(time.Second)
	if err := f.SetWorkerState("w1", "quiet"); err != nil {
		t.Fatal(err)
	}
	s.Settle()
	producer.Send("PUSH {\"jid\":\"12345679\",\"queue\":\"q\",\"jobtype\":\"x\",\"args\":[]}\r\n")
	producer.Want("+OK\r\n")
	worker.WantSilence()
	s.Advance(999 * time.Millisecond)
	worker.WantSilence()
	s.Advance(time.Millisecond)
	worker.Want("$-1\r\n")
	producer.Send("FETCH q\r\n")
	if job := object(t, producer); job["jid"] != "12345679" {
		t.Errorf("fetched %v", job)
	}
}

// A job that was not sent completely goes to the next worker at once.
func TestUndeliveredJobGoesToTheNextWorker(t *testing.T) {
	t.Parallel()
	s := setup(t)
	producer, other := dial(s, "producer", ""), dial(s, "other", "w2")
	conn := &brokenConn{}
	session := s.Front.Open(conn)
	session.Feed([]byte("HELLO {\"wid\":\"w1\",\"v\":2}\r\n"))
	conn.out.Sent(conn.out.Len())
	session.Feed([]byte("FETCH q\r\n"))
	producer.Send("PUSH {\"jid\":\"12345678\",\"queue\":\"q\",\"jobtype\":\"x\",\"args\":[]}\r\n")
	producer.Want("+OK\r\n")
	session.Deliver() // writes the job; the socket takes half of it
	conn.out.Sent(conn.out.Len() / 2)
	session.Closed()
	session.(frontends.UnsentHandler).HandleUnsent(conn.out.Len())
	other.Send("FETCH q\r\n")
	if job := object(t, other); job["jid"] != "12345678" {
		t.Errorf("fetched %v", job)
	}

	// A delivered job stays with its worker.
	session = s.Front.Open(conn)
	session.Feed([]byte("HELLO {\"wid\":\"w1\",\"v\":2}\r\n"))
	producer.Send("PUSH {\"jid\":\"12345679\",\"queue\":\"q\",\"jobtype\":\"x\",\"args\":[]}\r\n")
	producer.Want("+OK\r\n")
	session.Feed([]byte("FETCH q\r\n"))
	conn.out.Sent(conn.out.Len())
	session.Feed([]byte("INFO\r\n"))
	session.Closed()
	other.Send("FETCH q\r\n")
	s.Advance(2 * time.Second)
	other.Want("$-1\r\n")
}

// brokenConn is a connection without a peer.
type brokenConn struct {
	frontends.Conn
	out frontends.Outbox
}

func (c *brokenConn) Out() *frontends.Outbox { return &c.out }
func (c *brokenConn) Wake()                  {}
func (c *brokenConn) RemoteAddr() net.Addr   { return nil }
