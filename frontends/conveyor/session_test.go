package conveyor

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/redcon"
	"google.golang.org/protobuf/encoding/protowire"

	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

func plain(b core.Broker) frontends.Frontend { return New(b, Options{}) }

// setup opens a stage with the default options.
func setup(t testing.TB) *frontendtest.Stage { return frontendtest.Open(t, plain) }

// idOf is the uuid of the n-th job of a test.
func idOf(n int) string { return fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012x", n) }

// message encodes a job as Conveyor's client does.
type message struct {
	uuid, typ, queue, payload string
	parent, predecessor       string
	runAt                     time.Time
	retry, maxRetries         uint64
}

func (m message) encode() string {
	var b []byte
	text := func(n protowire.Number, s string) {
		if s != "" {
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
		}
	}
	number := func(n protowire.Number, v uint64) {
		if v != 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
		}
	}
	text(fieldUUID, m.uuid)
	text(fieldType, m.typ)
	text(fieldQueue, m.queue)
	text(fieldPayload, m.payload)
	if !m.runAt.IsZero() {
		at := protowire.AppendVarint(protowire.AppendTag(nil, fieldSeconds, protowire.VarintType), uint64(m.runAt.Unix()))
		b = protowire.AppendBytes(protowire.AppendTag(b, fieldRunAt, protowire.BytesType), at)
	}
	text(fieldParent, m.parent)
	text(fieldPredecessor, m.predecessor)
	number(fieldRetry, m.retry)
	number(fieldMaxRetries, m.maxRetries)
	return string(b)
}

// jobIn is a job of a queue, with the queue's name as its type.
func jobIn(n int, queue, payload string) message {
	return message{uuid: idOf(n), typ: queue, queue: queue, payload: payload}
}

// encodeCommand encodes a command.
func encodeCommand(words ...string) []byte {
	b := redcon.AppendArray(nil, len(words))
	for _, w := range words {
		b = redcon.AppendBulkString(b, w)
	}
	return b
}

// client sends commands and reads replies.
type client struct {
	t *testing.T
	*frontendtest.Client
}

func dial(t *testing.T, s *frontendtest.Stage, name string) client {
	t.Helper()
	return client{t, s.Dial(name)}
}

// do sends a command and returns its reply in words: a bulk string as it is, nil as "nil", an array with blanks between.
func (c client) do(words ...string) string {
	c.t.Helper()
	c.SendBytes(encodeCommand(words...))
	return c.next()
}

// next reads one reply.
func (c client) next() string {
	c.t.Helper()
	return readReply(c.Client)
}

func readReply(c *frontendtest.Client) string {
	line := strings.TrimSuffix(c.ReadUntil("\r\n"), "\r\n")
	kind, rest := line[0], line[1:]
	n, _ := strconv.Atoi(rest)
	switch kind {
	case '$':
		if n < 0 {
			return "nil"
		}
		return strings.TrimSuffix(string(c.Read(n+2)), "\r\n")
	case '*':
		if n < 0 {
			return "nil"
		}
		all := make([]string, n)
		for i := range all {
			all[i] = readReply(c)
		}
		return strings.Join(all, " ")
	}
	return rest
}

func (c client) want(want string, words ...string) {
	c.t.Helper()
	if got := c.do(words...); got != want {
		c.t.Fatalf("%q: got %q, want %q", words, got, want)
	}
}

// take pops a job and confirms it, as the worker's client does.
func (c client) take(worker string, queues ...string) (raw string) {
	c.t.Helper()
	words := []string{"BRPOP"}
	empty := true
	for _, q := range queues {
		words = append(words, "conv:queue:"+q)
		empty = empty && c.do("LLEN", "conv:queue:"+q) == "0"
	}
	if empty { // the fake clock would not end the wait
		return ""
	}
	c.SendBytes(encodeCommand(append(words, "0")...))
	raw = c.popped()
	uuid := uuidOf(c.t, raw)
	c.want("OK", "SET", "conv:job:"+uuid, raw)
	c.want("1", "SADD", "conv:worker:active:"+worker, uuid)
	c.want("1", "SADD", "conv:jobs:active", uuid)
	return raw
}

// popped reads the reply to BRPOP.
func (c client) popped() (raw string) {
	c.t.Helper()
	if line := c.ReadUntil("\r\n"); line == "*-1\r\n" {
		return ""
	} else if line != "*2\r\n" {
		c.t.Fatalf("BRPOP: %q", line)
	}
	readReply(c.Client)
	return readReply(c.Client)
}

func uuidOf(t *testing.T, raw string) string {
	t.Helper()
	e, err := parseEnvelope([]byte(raw))
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return e.uuid
}

// closeJob ends a job step by step, as the worker's client does, and reports whether it and its ancestors were closed.
func (c client) closeJob(worker, raw string) bool {
	c.t.Helper()
	e, err := parseEnvelope([]byte(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	u := "conv:job:" + e.uuid
	c.do("SREM", "conv:worker:active:"+worker, e.uuid)
	c.want("nil", "RPOP", u+":children")
	if c.do("SCARD", u+":active") != "0" {
		return false
	}
	c.want("nil", "RPOP", u+":onComplete")
	closed := true
	if e.parent != "" {
		c.do("SREM", "conv:job:"+e.parent+":active", e.uuid)
		parent := c.do("GET", "conv:job:"+e.parent)
		if parent == "nil" {
			c.t.Fatalf("the parent of %s is unknown", e.uuid)
		}
		closed = c.closeJob(worker, parent)
	}
	c.do("SREM", "conv:jobs:active", e.uuid)
	c.do("INCR", "conv:hist:success:2030-01-01_00:00")
	c.want("1", "EXPIRE", "conv:hist:success:2030-01-01_00:00", "3600")
	c.do("DEL", u)
	return closed
}

// failJob ends a job as the worker's client does when the function returns an error.
func (c client) failJob(raw, last string, words ...string) {
	c.t.Helper()
	u := uuidOf(c.t, raw)
	c.want(raw, "GET", "conv:job:"+u)
	var pipeline []byte
	for _, words := range [][]string{
		{"DEL", "conv:job:" + u},
		{"DEL", "conv:job:" + u + ":onComplete"},
		{"DEL", "conv:job:" + u + ":children"},
		{"SREM", "conv:jobs:active", u},
		append([]string{last}, words...),
	} {
		pipeline = append(pipeline, encodeCommand(words...)...)
	}
	c.SendBytes(pipeline)
	for range 5 {
		if got := c.next(); got == "nil" || strings.HasPrefix(got, "ERR") {
			c.t.Fatalf("the pipeline of a failure: %q", got)
		}
	}
}

func TestJobBytesComeBackUnchanged(t *testing.T) {
	t.Parallel()
	c := dial(t, setup(t), "client")
	for i, raw := range []string{
		jobIn(1, "q", "payload").encode(),
		jobIn(2, "q", "").encode(),
		message{uuid: idOf(3), typ: "T", queue: "q", payload: "\x00\xff", maxRetries: 7}.encode() + "\xa2\x06\x03new", // an unknown field
	} {
		c.want("1", "LPUSH", "conv:queue:q", raw)
		if got := c.take("w", "q"); got != raw {
			t.Errorf("job %d: got %q, want %q", i, got, raw)
		}
	}
}

func TestFamiliesCloseInOrder(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c := dial(t, s, "client")
	parent := jobIn(1, "q", "parent").encode()
	c.want("1", "LPUSH", "conv:queue:q", parent)
	if got := c.take("w", "q"); got != parent {
		t.Fatalf("got %q", got)
	}
	heir := message{uuid: idOf(9), typ: "heir", queue: "heir", predecessor: idOf(1)}.encode()
	c.want("1", "LPUSH", "conv:job:"+idOf(1)+":onComplete", heir)
	for n := 2; n <= 3; n++ {
		child := message{uuid: idOf(n), typ: "child", queue: "child", parent: idOf(1)}.encode()
		c.want(strconv.Itoa(n-1), "LPUSH", "conv:job:"+idOf(1)+":children", child)
	}
	if c.take("w", "child") != "" {
		t.Fatal("a child ran beside its parent")
	}
	if c.closeJob("w", parent) {
		t.Fatal("a parent with open children was closed")
	}
	for n := 2; n <= 3; n++ {
		if c.take("w", "heir") != "" {
			t.Fatal("the heir ran before the last child")
		}
		child := c.take("w", "child")
		if uuidOf(t, child) != idOf(n) {
			t.Fatalf("got %q", child)
		}
		if closed := c.closeJob("w", child); closed != (n == 3) {
			t.Fatalf("child %d: closed %v", n, closed)
		}
	}
	if got := c.take("w", "heir"); got != heir {
		t.Fatalf("the heir did not run: %q", got)
	}
	if !c.closeJob("w", heir) {
		t.Fatal("the heir was not closed")
	}
	c.want("nil", "GET", "conv:job:"+idOf(1))
	c.want("0", "SCARD", "conv:jobs:active")
}

func TestFailedChildKeepsItsFamily(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c := dial(t, s, "client")
	parent := jobIn(1, "q", "parent").encode()
	c.do("LPUSH", "conv:queue:q", parent)
	c.take("w", "q")
	c.do("LPUSH", "conv:job:"+idOf(1)+":onComplete", message{uuid: idOf(3), typ: "h", queue: "heir", predecessor: idOf(1)}.encode())
	m := message{uuid: idOf(2), typ: "c", queue: "child", parent: idOf(1)}
	c.do("LPUSH", "conv:job:"+idOf(1)+":children", m.encode())
	c.closeJob("w", parent)

	child := c.take("w", "child")
	m.retry = 1
	due := strconv.FormatInt(s.Clock.Now().Add(2*time.Second).Time().Unix(), 10)
	c.failJob(child, "ZADD", "conv:scheduled", due, m.encode())
	c.want("1", "ZCARD", "conv:scheduled")
	if c.take("w", "child") != "" {
		t.Fatal("the next try began at once")
	}
	s.Advance(2 * time.Second)
	c.want("", "ZRANGEBYSCORE", "conv:scheduled", "-inf", due)
	again := c.take("w", "child")
	if again != m.encode() {
		t.Fatalf("the second try: %q, want %q", again, m.encode())
	}
	if c.take("w", "heir") != "" {
		t.Fatal("the heir ran before the child had succeeded")
	}
	if !c.closeJob("w", again) {
		t.Fatal("the family was not closed")
	}
	if uuidOf(t, c.take("w", "heir")) != idOf(3) {
		t.Fatal("the heir did not run")
	}
}

func TestFinalFailureIsKept(t *testing.T) {
	t.Parallel()
	c := dial(t, setup(t), "client")
	m := jobIn(1, "q", "p")
	m.maxRetries = 1
	c.do("LPUSH", "conv:queue:q", m.encode())
	raw := c.take("w", "q")
	m.retry = 1
	c.failJob(raw, "LPUSH", "conv:failed", m.encode())
	c.want("1", "LLEN", "conv:failed")
	c.want(m.encode(), "LRANGE", "conv:failed", "0", "50")
	c.want("0", "SCARD", "conv:worker:active:w")
	c.want("1", "LREM", "conv:failed", "1", m.encode())
	c.want("0", "LLEN", "conv:failed")
}

func TestConnectionLostBeforeConfirmation(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c, other := dial(t, s, "worker"), dial(t, s, "other")
	raw := jobIn(1, "q", "p").encode()
	c.do("LPUSH", "conv:queue:q", raw)
	c.SendBytes(encodeCommand("BRPOP", "conv:queue:q", "0"))
	if c.popped() != raw {
		t.Fatal("no job")
	}
	c.Hangup()
	if other.take("w2", "q") != raw {
		t.Fatal("the job was lost with the connection")
	}
}

func TestFailureCutInTheMiddleLosesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c, other := dial(t, s, "worker"), dial(t, s, "other")
	raw := jobIn(1, "q", "p").encode()
	c.do("LPUSH", "conv:queue:q", raw)
	c.take("w", "q")
	c.want("1", "DEL", "conv:job:"+idOf(1))
	c.want("1", "SREM", "conv:jobs:active", idOf(1))
	c.Hangup()
	if other.take("w2", "q") != raw {
		t.Fatal("the job was lost between the steps of its failure")
	}
}

func TestCheckInsKeepTheLease(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c, other := dial(t, s, "worker"), dial(t, s, "other")
	raw := jobIn(1, "q", "p").encode()
	c.do("LPUSH", "conv:queue:q", raw)
	c.take("w", "q")
	c.Hangup()
	for range 10 {
		s.Advance(15 * time.Second)
		other.do("ZADD", "conv:workers:active", "1", "w")
	}
	if other.take("w2", "q") != "" {
		t.Fatal("a job was taken from a worker that checks in")
	}
	s.Advance(leaseFor)
	if other.take("w2", "q") != raw {
		t.Fatal("the job of a silent worker did not come back")
	}
}

func TestSilentWorkersJobsAreRestarted(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c := dial(t, s, "worker")
	raws := map[string]bool{}
	for n := range 3 {
		raw := jobIn(n, "q", "p").encode()
		raws[raw] = true
		c.do("LPUSH", "conv:queue:q", raw)
		c.take("w", "q")
	}
	c.want("1", "ZADD", "conv:workers:active", "1000", "w")
	pruners := []client{dial(t, s, "one"), dial(t, s, "two")}
	pruners[0].want("w", "ZRANGEBYSCORE", "conv:workers:active", "-inf", "2000")
	for {
		popped := pruners[0].do("SPOP", "conv:worker:active:w")
		twin := pruners[1].do("SPOP", "conv:worker:active:w") // another client prunes at the same time
		if popped == "nil" && twin == "nil" {
			break
		}
		for i, u := range []string{popped, twin} {
			if u == "nil" {
				continue
			}
			if raw := pruners[i].do("GET", "conv:job:"+u); raw != "nil" {
				pruners[i].failJob(raw, "LPUSH", "conv:queue:q", raw)
			}
		}
	}
	pruners[0].want("1", "ZREM", "conv:workers:active", "w")
	c.want("3", "LLEN", "conv:queue:q")
	for range 3 {
		raw := c.take("w2", "q")
		if !raws[raw] {
			t.Fatalf("got %q", raw)
		}
		delete(raws, raw)
	}
}

func TestRunningJobsSurviveARestartOfTheBroker(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c := dial(t, s, "worker")
	parent := jobIn(1, "q", "parent").encode()
	c.do("LPUSH", "conv:queue:q", parent)
	c.take("w", "q")
	child := message{uuid: idOf(2), typ: "c", queue: "child", parent: idOf(1)}.encode()
	c.do("LPUSH", "conv:job:"+idOf(1)+":children", child)
	c.closeJob("w", parent)
	s.Restart()
	c = dial(t, s, "again")
	got := c.take("w", "child")
	if got != child {
		t.Fatalf("got %q", got)
	}
	if !c.closeJob("w", got) {
		t.Fatal("the family was not closed")
	}
}

func TestNamespacesAreApart(t *testing.T) {
	t.Parallel()
	c := dial(t, setup(t), "client")
	raw := jobIn(1, "q", "p").encode()
	c.want("1", "LPUSH", "other:queue:q", raw)
	c.want("0", "LLEN", "conv:queue:q")
	c.want("1", "LLEN", "other:queue:q")
	c.want("other:queue:q "+raw, "BRPOP", "other:queue:q", "1")
}

func TestEventsReachSubscribers(t *testing.T) {
	t.Parallel()
	s := setup(t)
	sub, pub := dial(t, s, "sub"), dial(t, s, "pub")
	sub.want("subscribe conv:events 1", "SUBSCRIBE", "conv:events")
	sub.want("pong ", "PING")
	pub.want("1", "PUBLISH", "conv:events", "job")
	if got := sub.next(); got != "message conv:events job" {
		t.Errorf("got %q", got)
	}
	sub.Hangup()
	pub.want("0", "PUBLISH", "conv:events", "job")
}

// dialect is the dialect of the shared suite.
var dialect = frontendtest.Dialect{
	New:      plain,
	Released: true,
	SubmitRequest: func(n int, queue, body string) []byte {
		return encodeCommand("LPUSH", "conv:queue:"+queue, jobIn(n, queue, body).encode())
	},
	SubmitReply: func(c *frontendtest.Client, _ int) { readReply(c) },
	Lease: func(c *frontendtest.Client, queue string) (frontendtest.Leased, bool) {
		c.SendBytes(encodeCommand("LLEN", "conv:queue:"+queue))
		if readReply(c) == "0" { // the fake clock would not end the wait
			return frontendtest.Leased{}, false
		}
		c.SendBytes(encodeCommand("BRPOP", "conv:queue:"+queue, "0"))
		c.ReadUntil("\r\n")
		readReply(c)
		e, err := parseEnvelope([]byte(readReply(c)))
		if err != nil {
			panic(err)
		}
		return frontendtest.Leased{ID: e.uuid, Queue: queue, Body: string(e.payload)}, true
	},
	Complete: func(c *frontendtest.Client, job frontendtest.Leased) {
		c.SendBytes(append(encodeCommand("SREM", "conv:jobs:active", job.ID), encodeCommand("DEL", "conv:job:"+job.ID)...))
		readReply(c)
		readReply(c)
	},
	Ping: encodeCommand("PING"),
	Pong: func(c *frontendtest.Client) { c.Want("+PONG\r\n") },
	Garbage: [][]byte{
		nil, []byte("\r\n"), []byte("*-1\r\n"), []byte("*1\r\n$-1\r\n"), []byte("BRPOP\r\n"), []byte("BRPOP conv:queue:q x\r\n"),
		[]byte("LPUSH conv:queue:q notajob\r\n"), []byte("LPUSH nokey x\r\n"), []byte("SREM conv:jobs:active\r\n"), []byte("DEL a b c\r\n"),
		[]byte("ZADD conv:scheduled x y\r\n"), []byte("LRANGE conv:failed 0 99999999999999999999\r\n"),
	},
	Oversize: []byte("*3\r\n$5\r\nLPUSH\r\n$12\r\nconv:queue:q\r\n$99999999\r\n"),
}

func TestSuite(t *testing.T) {
	t.Parallel()
	frontendtest.Run(t, dialect)
}
