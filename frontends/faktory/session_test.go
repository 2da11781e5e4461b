package faktory

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// plain is the front-end without a password and with a low limit on lines.
func plain(b core.Broker) frontends.Frontend {
	return onStage(access.Unrestricted(b, core.Faktory), Options{})
}

func onStage(b *access.Guard, o Options) frontends.Frontend {
	o.MaxBodyBytes = 256 << 10
	return New(b, o)
}

// follow is plain at a node that follows.
func follow(b core.Broker, l frontends.Leader) frontends.Frontend {
	return onStage(access.Unrestricted(b, core.Faktory), Options{Options: frontends.Options{Leader: l}})
}

func setup(t testing.TB) *frontendtest.Stage { return frontendtest.Open(t, plain) }

// greet sends HELLO as a producer.
func greet(c *frontendtest.Client) {
	c.Want("+HI {\"v\":2}\r\n")
	c.Send("HELLO {\"v\":2}\r\n")
	c.Want("+OK\r\n")
}

// dial opens a connection and sends HELLO; wid is empty for a producer.
func dial(s *frontendtest.Stage, name, wid string) *frontendtest.Client {
	c := s.Dial(name)
	c.Want("+HI {\"v\":2}\r\n")
	c.Send(fmt.Sprintf("HELLO {\"wid\":%q,\"v\":2}\r\n", wid))
	c.Want("+OK\r\n")
	return c
}

// bulk reads a bulk reply; nil is $-1.
func bulk(t testing.TB, c *frontendtest.Client) []byte {
	t.Helper()
	head := c.ReadUntil("\r\n")
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "$")))
	if err != nil || head[0] != '$' {
		t.Fatalf("%s: got %q, want a bulk reply", c.Name, head)
	}
	if n < 0 {
		return nil
	}
	return append([]byte(nil), c.Read(n + 2)[:n]...)
}

// object reads a bulk reply that is a JSON object.
func object(t testing.TB, c *frontendtest.Client) map[string]any {
	t.Helper()
	p := bulk(t, c)
	if p == nil {
		return nil
	}
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(string(p)))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%s: %q is no object: %v", c.Name, p, err)
	}
	return m
}

// at follows a path of names through nested objects.
func at(m map[string]any, path ...string) any {
	var v any = m
	for _, name := range path {
		inner, _ := v.(map[string]any)
		v = inner[name]
	}
	return v
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// suiteDialect describes Faktory for the test suite of all front-ends. The suite does not test expired leases here,
// because they count as failures with a back-off.
func suiteDialect(t *testing.T) frontendtest.Dialect {
	return frontendtest.Dialect{
		New: plain, Follow: follow,
		Greet: func(c *frontendtest.Client) {
			c.Want("+HI {\"v\":2}\r\n")
			c.Send("HELLO {\"wid\":\"worker\",\"v\":2}\r\n")
			c.Want("+OK\r\n")
		},
		SubmitRequest: func(n int, queue, body string) []byte {
			args, _ := json.Marshal([]string{body})
			return fmt.Appendf(nil, "PUSH {\"jid\":\"suite-%06d\",\"queue\":%q,\"jobtype\":\"work\",\"args\":%s}\r\n",
				n, queue, args)
		},
		SubmitReply: func(c *frontendtest.Client, _ int) { c.Want("+OK\r\n") },
		Lease: func(c *frontendtest.Client, queue string) (frontendtest.Leased, bool) {
			c.Send("INFO\r\n") // FETCH waits
			if size := at(object(t, c), "faktory", "queues", queue); size == nil || size == number(0) {
				return frontendtest.Leased{}, false
			}
			c.Send("FETCH " + queue + "\r\n")
			job := object(t, c)
			return frontendtest.Leased{
				ID: job["jid"].(string), Queue: job["queue"].(string), Body: job["args"].([]any)[0].(string),
			}, true
		},
		Complete: func(c *frontendtest.Client, job frontendtest.Leased) {
			c.Send(fmt.Sprintf("ACK {\"jid\":%q}\r\n", job.ID))
			c.Want("+OK\r\n")
		},
		Ping:      []byte("QUEUE LATENCY nothing\r\n"),
		Pong:      func(c *frontendtest.Client) { c.Want("$13\r\n{\"nothing\":0}\r\n") },
		Commands:  slices.Collect(maps.Keys(commands)),
		Exchanges: exchanges,
		Garbage: [][]byte{
			[]byte("PUSH"), []byte("PUSH {"), []byte("PUSH {\"jid\":\"\xff\xfe\"}"), []byte("PUSHB [[[[[["),
			[]byte("FETCH " + strings.Repeat("q", 5000)), []byte("ACK []"), []byte("FAIL 1"), []byte("BEAT \"x\""),
			[]byte("MUTATE {\"cmd\":\"kill\",\"target\":\"dead\",\"filter\":{\"regexp\":\"[[[***\"}}"),
			[]byte("QUEUE REMOVE"),
			[]byte("BATCH COMMIT b-zzzzzzzzzzzzz"), []byte("TRACK SET {}"), []byte("HELLO {}"), []byte("\x00\x01\x02"),
		},
		Oversize: []byte("PUSH {\"jid\":\""),
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	frontendtest.Run(t, suiteDialect(t))
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	frontendtest.PlayAll(t, plain)
}
