package conveyor

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

func plain(b core.Broker) frontends.Frontend {
	return New(access.Unrestricted(b, core.Conveyor), Options{})
}

// setup opens a stage with the default options.
func setup(t testing.TB) *frontendtest.Stage { return frontendtest.Open(t, plain) }

// submitted is a worker that has submitted a job to the queue q, another one, and the job.
func submitted(t *testing.T, s *frontendtest.Stage) (c, other client, raw string) {
	t.Helper()
	c, other, raw = dial(t, s, "worker"), dial(t, s, "other"), jobIn(1, "q", "p").encode()
	c.do("LPUSH", "conv:queue:q", raw)
	return c, other, raw
}

func TestJobBytesComeBackUnchanged(t *testing.T) {
	t.Parallel()
	c := dial(t, setup(t), "client")
	for i, raw := range []string{
		jobIn(1, "q", "payload").encode(),
		jobIn(2, "q", "").encode(),
		// an unknown field
		message{uuid: idOf(3), typ: "T", queue: "q", payload: "\x00\xff", maxRetries: 7}.encode() + "\xa2\x06\x03new",
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

func TestFailedChildKeepsItsLinks(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c := dial(t, s, "client")
	parent := jobIn(1, "q", "parent").encode()
	c.do("LPUSH", "conv:queue:q", parent)
	c.take("w", "q")
	c.do("LPUSH", "conv:job:"+idOf(1)+":onComplete",
		message{uuid: idOf(3), typ: "h", queue: "heir", predecessor: idOf(1)}.encode())
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

func TestUnconfirmedJobIsReleasedWithItsConnection(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c, other, raw := submitted(t, s)
	c.SendBytes(encodeCommand("BRPOP", "conv:queue:q", "0"))
	if c.popped() != raw {
		t.Fatal("no job")
	}
	c.Hangup()
	if other.take("w2", "q") != raw {
		t.Fatal("the job was lost with the connection")
	}
}

func TestInterruptedFailurePipelineLosesNoJob(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c, other, raw := submitted(t, s)
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
	c, other, raw := submitted(t, s)
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
		twin := pruners[1].do("SPOP", "conv:worker:active:w") // another client that prunes at the same time
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

func TestNamespacesAreSeparate(t *testing.T) {
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
		c.SendBytes(append(encodeCommand("SREM", "conv:jobs:active", job.ID),
			encodeCommand("DEL", "conv:job:"+job.ID)...))
		readReply(c)
		readReply(c)
	},
	Ping:      encodeCommand("PING"),
	Pong:      func(c *frontendtest.Client) { c.Want("+PONG\r\n") },
	Commands:  slices.Collect(maps.Keys(commands)),
	Exchanges: exchanges(),
	Garbage: [][]byte{
		nil, []byte("\r\n"), []byte("*-1\r\n"), []byte("*1\r\n$-1\r\n"), []byte("BRPOP\r\n"),
		[]byte("BRPOP conv:queue:q x\r\n"),
		[]byte("LPUSH conv:queue:q notajob\r\n"), []byte("LPUSH nokey x\r\n"), []byte("SREM conv:jobs:active\r\n"),
		[]byte("DEL a b c\r\n"),
		[]byte("ZADD conv:scheduled x y\r\n"), []byte("LRANGE conv:failed 0 99999999999999999999\r\n"),
	},
	Oversize: []byte("*3\r\n$5\r\nLPUSH\r\n$12\r\nconv:queue:q\r\n$99999999\r\n"),
}

func TestSuite(t *testing.T) {
	t.Parallel()
	frontendtest.Run(t, dialect)
}
