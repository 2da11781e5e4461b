package crossprotocol

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/faktory"
	"broker/frontends/frontendtest"
	"broker/frontends/gearman"
	"broker/frontends/workq"
	"broker/operate/httpapi"
)

// env is one broker with a front-end for each protocol.
type env struct {
	t                       *testing.T
	workq, gearman, faktory *frontendtest.Stage
	observer                core.ClientID
	clients                 int
	http                    *httpapi.Server // nil: not used yet
	handler                 http.Handler    // of the HTTP API; nil: likewise

	// The job under test. jobID is empty unless the client chose it.
	jobSeq       uint64
	jobCreatedAt core.Instant
	jobID        string
}

func newEnv(t *testing.T, settings ...frontendtest.Setting) *env {
	t.Helper()
	e := &env{t: t}
	e.workq = frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return workq.New(access.Unrestricted(b, core.Workq), workq.Options{Handles: core.NewHandleFormat("H:host")})
	}, settings...)
	e.gearman = frontendtest.NewStage(t, e.workq.Broker, e.workq.Clock, func(b core.Broker) frontends.Frontend {
		return gearman.New(access.Unrestricted(b, core.Gearman),
			gearman.Options{Handles: core.NewHandleFormat("H:host")})
	}, nil)
	e.faktory = frontendtest.NewStage(t, e.workq.Broker, e.workq.Clock, func(b core.Broker) frontends.Frontend {
		return faktory.New(access.Unrestricted(b, core.Faktory), faktory.Options{})
	}, nil)
	e.observer = e.workq.Broker.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	return e
}

// advance moves the clock and runs the due timers of all front-ends.
func (e *env) advance(d time.Duration) {
	e.t.Helper()
	e.workq.Advance(d)
	e.gearman.Advance(0)
	e.faktory.Advance(0)
}

// do applies an operation directly to the broker.
func (e *env) do(op core.Op) core.Reply {
	e.t.Helper()
	replies := e.workq.Broker.Do(e.observer, []core.Op{op}, nil)
	if len(replies) != 1 {
		e.t.Fatalf("%T: %d replies", op, len(replies))
	}
	return replies[0]
}

// state is the name of a job's state, "gone" if the job does not exist.
func (e *env) state(seq uint64) string {
	e.t.Helper()
	r := e.do(&core.Inspect{Ref: core.Ref{Seq: seq}, Brief: true})
	if r.Kind == core.Failed {
		return "gone"
	}
	return r.Info.State.String()
}

// newest is the Seq of the newest waiting job of a queue.
func (e *env) newest(queue string) uint64 {
	e.t.Helper()
	var seq uint64
	for _, state := range []core.State{core.Ready, core.Scheduled} {
		for _, job := range e.do(&core.ListJobs{Queue: queue, State: state, Brief: true, Limit: 1000}).Jobs {
			seq = max(seq, job.Seq)
		}
	}
	if seq == 0 {
		e.t.Fatalf("no job in %s", queue)
	}
	return seq
}

func (e *env) dial(s *frontendtest.Stage) *frontendtest.Client {
	e.clients++
	return s.Dial("client " + strconv.Itoa(e.clients))
}

// dialFaktory connects and completes the handshake, as a worker if wid is not empty.
func (e *env) dialFaktory(wid string) *frontendtest.Client {
	e.t.Helper()
	c := e.dial(e.faktory)
	c.Want("+HI {\"v\":2}\r\n")
	c.Send(fmt.Sprintf("HELLO {\"wid\":%q,\"v\":2}\r\n", wid))
	c.Want("+OK\r\n")
	return c
}

// Gearman packet types that the tests use.
const (
	canDo          = 1
	jobCreated     = 8
	noJob          = 10
	workStatus     = 12
	workComplete   = 13
	workFail       = 14
	getStatus      = 15
	submitJobBg    = 18
	errorPacket    = 19
	statusRes      = 20
	workException  = 25
	optionReq      = 26
	workData       = 28
	workWarning    = 29
	grabJobUniq    = 30
	jobAssignUniq  = 31
	submitJobEpoch = 36
	submitJob      = 7
	submitJobHigh  = 21
	submitJobLowBg = 34
	canDoTimeout   = 23
	preSleep       = 4
	noop           = 6
	echoReq        = 16
	setClientID    = 22

	getStatusUnique = 41
)

var packetNames = map[uint32]string{
	jobCreated: "JOB_CREATED", noJob: "NO_JOB", workStatus: "WORK_STATUS", workComplete: "WORK_COMPLETE",
	workFail: "WORK_FAIL", errorPacket: "ERROR", statusRes: "STATUS_RES", workException: "WORK_EXCEPTION",
	workData: "WORK_DATA", workWarning: "WORK_WARNING", jobAssignUniq: "JOB_ASSIGN_UNIQ", noop: "NOOP",
}

// packet encodes a Gearman request.
func packet(typ uint32, fields ...string) []byte {
	body := strings.Join(fields, "\x00")
	p := binary.BigEndian.AppendUint32([]byte("\x00REQ"), typ)
	return append(binary.BigEndian.AppendUint32(p, uint32(len(body))), body...)
}

// answer is one packet from the server.
type answer struct {
	typ    uint32
	fields []string
}

// answers decodes all packets that the client has received.
func (e *env) answers(c *frontendtest.Client) []answer {
	e.t.Helper()
	var all []answer
	for rest := c.Rest(); len(rest) > 0; {
		if len(rest) < 12 || string(rest[:4]) != "\x00RES" {
			e.t.Fatalf("not a packet: %q", rest)
		}
		size := int(binary.BigEndian.Uint32(rest[8:]))
		all = append(all, answer{binary.BigEndian.Uint32(rest[4:]), strings.Split(string(rest[12:12+size]), "\x00")})
		rest = rest[12+size:]
	}
	return all
}

// one returns the only packet that the client has received.
func (e *env) one(c *frontendtest.Client, typ uint32) answer {
	e.t.Helper()
	all := e.answers(c)
	if len(all) != 1 || all[0].typ != typ {
		e.t.Fatalf("packets %v, want one %s", all, packetNames[typ])
	}
	return all[0]
}

// describe formats packets, without handles.
func describe(all []answer) string {
	var b strings.Builder
	for i, a := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(packetNames[a.typ])
		for j, field := range a.fields {
			if strings.HasPrefix(field, "H:host:") || a.typ == errorPacket && j > 0 {
				continue
			}
			fmt.Fprintf(&b, " %s", field)
		}
	}
	return b.String()
}

// bulk reads one bulk reply from Faktory.
func (e *env) bulk(c *frontendtest.Client) string {
	e.t.Helper()
	head := c.ReadUntil("\r\n")
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "$")))
	if err != nil || head[0] != '$' {
		e.t.Fatalf("got %q, want a bulk reply", head)
	}
	if n < 0 {
		return ""
	}
	return string(c.Read(n + 2)[:n])
}

// object reads a bulk reply and decodes its JSON.
func (e *env) object(c *frontendtest.Client, into any) {
	e.t.Helper()
	if text := e.bulk(c); json.Unmarshal([]byte(text), into) != nil {
		e.t.Fatalf("not JSON: %q", text)
	}
}
