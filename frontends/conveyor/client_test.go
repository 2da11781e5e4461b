package conveyor

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/redcon"
	"google.golang.org/protobuf/encoding/protowire"

	"broker/frontends/frontendtest"
)

// Fields that only clients read.
const (
	fieldParent      protowire.Number = 6
	fieldPredecessor protowire.Number = 7
)

// idOf is the uuid of the n-th job of a test.
func idOf(n int) string { return fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012x", n) }

// message encodes a job like Conveyor's client.
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
		at := protowire.AppendVarint(protowire.AppendTag(nil, fieldSeconds, protowire.VarintType),
			uint64(m.runAt.Unix()))
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

// do sends a command and returns its reply as text: a bulk string unchanged, nil as "nil", an array separated by
// spaces.
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

// take pops a job and confirms it, like the worker's client.
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

// closeJob ends a job step by step, like the worker's client, and reports whether the job and its ancestors were
// closed.
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
	if p := parentOf(raw); p != "" {
		c.do("SREM", "conv:job:"+p+":active", e.uuid)
		parent := c.do("GET", "conv:job:"+p)
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

// parentOf is the uuid of the parent of an encoded job.
func parentOf(raw string) string {
	for b := []byte(raw); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if number == fieldParent {
			parent, _ := protowire.ConsumeString(b[n:])
			return parent
		}
		b = b[n+protowire.ConsumeFieldValue(number, kind, b[n:]):]
	}
	return ""
}

// failJob ends a job like the worker's client after an error.
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
