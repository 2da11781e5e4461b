package crossprotocol

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/redcon"
	"google.golang.org/protobuf/encoding/protowire"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/conveyor"
	"broker/frontends/frontendtest"
)

// conveyorClient sends Redis commands to the front-end for Conveyor.
type conveyorClient struct {
	*frontendtest.Client
	e     *env
	stage *frontendtest.Stage
}

func (e *env) dialConveyor() conveyorClient {
	e.t.Helper()
	stage := frontendtest.NewStage(e.t, e.workq.Broker, e.workq.Clock, func(b core.Broker) frontends.Frontend {
		return conveyor.New(access.Unrestricted(b, core.Conveyor), conveyor.Options{})
	}, nil)
	return conveyorClient{e.dial(stage), e, stage}
}

// do sends a command and returns its reply: a bulk string as it is, the last element of an array.
func (c conveyorClient) do(words ...string) string {
	c.e.t.Helper()
	b := redcon.AppendArray(nil, len(words))
	for _, w := range words {
		b = redcon.AppendBulkString(b, w)
	}
	c.SendBytes(b)
	return c.next()
}

func (c conveyorClient) next() (text string) {
	c.e.t.Helper()
	line := strings.TrimSuffix(c.ReadUntil("\r\n"), "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch {
	case line[0] == '$' && n >= 0:
		return strings.TrimSuffix(string(c.Read(n+2)), "\r\n")
	case line[0] == '*' && n >= 0:
		for range n {
			text = c.next()
		}
		return text
	}
	return line
}

// conveyorJob encodes a job as Conveyor's client does.
func conveyorJob(uuid, payload string, retry int) string {
	var b []byte
	for i, s := range []string{uuid, queue, queue, payload} {
		b = protowire.AppendString(protowire.AppendTag(b, protowire.Number(i+1), protowire.BytesType), s)
	}
	if retry > 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, 9, protowire.VarintType), uint64(retry))
	}
	return string(b)
}

// conveyorPayload is the payload of an encoded job, and its uuid.
func conveyorPayload(t *testing.T, raw string) (uuid, payload string) {
	t.Helper()
	for b := []byte(raw); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatalf("not a job: %q", raw)
		}
		size := protowire.ConsumeFieldValue(number, kind, b[n:])
		switch v, _ := protowire.ConsumeBytes(b[n:]); number {
		case 1:
			uuid = string(v)
		case 4:
			payload = string(v)
		}
		b = b[n+size:]
	}
	return uuid, payload
}

// conveyorSubmitted runs a job of Conveyor with a worker of another protocol.
func conveyorSubmitted(t *testing.T, k workerKind, end int) string {
	t.Helper()
	e := newEnv(t, frontendtest.InMemory)
	c := e.dialConveyor()
	if got := c.do("LPUSH", "conv:queue:"+queue, conveyorJob(id, "hi", 0)); got != ":1" {
		t.Fatalf("LPUSH: %s", got)
	}
	e.jobSeq, e.jobCreatedAt, e.jobID = e.newest(queue), e.workq.Clock.Now(), id
	w := k.take(e)
	if w == nil {
		t.Fatal("no worker gets the job")
	}
	answered, late := ends[end].run(e, w)
	parts := []string{
		"waiting: " + c.do("LLEN", "conv:queue:"+queue)[1:], "failed: " + c.do("LLEN", "conv:failed")[1:],
		"job: " + e.state(e.jobSeq),
	}
	if answered != "" && answered != "nothing" && answered != "`+OK`" && answered != "`204`" {
		parts = append(parts, "worker: "+answered)
	}
	if late {
		parts = append(parts, "late finish: "+w.finish(true)+", job: "+e.state(e.jobSeq))
	}
	return strings.Join(parts, "; ")
}

// conveyorEnds are the ways in which a worker of Conveyor ends its work.
var conveyorEnds = []struct {
	name string
	run  func(c conveyorClient, uuid string)
}{
	{"close", func(c conveyorClient, uuid string) { c.do("SREM", "conv:worker:active:w", uuid) }},
	{"fail, try again", func(c conveyorClient, uuid string) {
		c.dismantle(uuid)
		due := c.stage.Clock.Now().Add(2 * time.Second).Time().Unix()
		c.do("ZADD", "conv:scheduled", strconv.FormatInt(due, 10), conveyorJob(uuid, "hi", 1))
	}},
	{"fail finally", func(c conveyorClient, uuid string) {
		c.dismantle(uuid)
		c.do("LPUSH", "conv:failed", conveyorJob(uuid, "hi", 3))
	}},
	{"worker lost", func(c conveyorClient, _ string) {
		c.e.advance(2 * time.Minute)
		c.stage.Advance(0)
	}},
}

// dismantle is the beginning of the pipelines of a failure.
func (c conveyorClient) dismantle(uuid string) {
	c.do("DEL", "conv:job:"+uuid)
	c.do("DEL", "conv:job:"+uuid+":children")
	c.do("SREM", "conv:jobs:active", uuid)
}

// conveyorWorker runs a job of another protocol with a worker of Conveyor.
func conveyorWorker(t *testing.T, o origin, end int) string {
	t.Helper()
	e := newEnv(t, frontendtest.InMemory)
	c := e.dialConveyor()
	report := o.submit(e, jobTimes{ttr, ttl})
	seq := e.newest(queue)
	uuid, payload := conveyorPayload(t, c.do("BRPOP", "conv:queue:"+queue, "0"))
	if got := c.do("SADD", "conv:worker:active:w", uuid); got != ":1" {
		t.Fatalf("SADD: %s", got)
	}
	if got := e.state(seq); got != "leased" {
		t.Errorf("a popped job is %s", got)
	}
	conveyorEnds[end].run(c, uuid)
	return fmt.Sprintf("payload: `%s`; client: %s; job: %s", payload, report(), e.state(seq))
}

// TestConveyorSharingTable runs every cell of the tables about Conveyor and compares the results with docs/sharing.md.
func TestConveyorSharingTable(t *testing.T) {
	t.Parallel()
	var names []string
	for _, end := range conveyorEnds {
		names = append(names, end.name)
	}
	sharingSection(t, section{
		name: "conveyor", submitted: "Conveyor job", works: "Conveyor worker", ends: names, submit: conveyorSubmitted,
		work: conveyorWorker,
	})
}
