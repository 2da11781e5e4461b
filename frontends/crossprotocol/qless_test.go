package crossprotocol

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
	"broker/frontends/qless"
)

// qlessClient calls the operations of Qless on the broker of an env.
type qlessClient struct {
	*frontendtest.Client
	e     *env
	stage *frontendtest.Stage
}

// qlessScript is a script that the front-end recognizes.
const qlessScript = "local QlessAPI = {}"

func (e *env) dialQless() qlessClient {
	e.t.Helper()
	stage := frontendtest.NewStage(e.t, e.workq.Broker, e.workq.Clock, func(b core.Broker) frontends.Frontend {
		f := qless.New(access.Unrestricted(b, core.Qless), qless.Options{})
		if err := f.Start(); err != nil {
			e.t.Fatal(err)
		}
		return f
	}, nil)
	return qlessClient{e.dial(stage), e, stage}
}

// call calls an operation at the time of the env's clock.
func (c qlessClient) call(operation string, words ...string) string {
	c.e.t.Helper()
	c.stage.Front.Tick(c.stage.Clock.Now())
	now := strconv.FormatFloat(float64(c.stage.Clock.Now())/1e6, 'f', -1, 64)
	words = append([]string{"EVAL", qlessScript, "0", operation, now}, words...)
	b := redcon.AppendArray(nil, len(words))
	for _, w := range words {
		b = redcon.AppendBulkString(b, w)
	}
	c.SendBytes(b)
	text := string(c.Rest())
	if strings.HasPrefix(text, "$") && !strings.HasPrefix(text, "$-1") {
		_, text, _ = strings.Cut(text, "\r\n")
	}
	return strings.TrimSuffix(text, "\r\n")
}

// job is a job in the format of Qless.
func (c qlessClient) job(jid string) (j struct{ Jid, State, Worker, Data, Klass string }) {
	c.e.t.Helper()
	text := c.call("get", jid)
	if text == "$-1" {
		j.State = "unknown"
		return j
	}
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		c.e.t.Fatalf("%s: %v", text, err)
	}
	return j
}

// qlessJob runs a job of Qless with a worker of another protocol.
func qlessJob(t *testing.T, k workerKind, end int) string {
	t.Helper()
	e := newEnv(t, frontendtest.InMemory)
	c := e.dialQless()
	if got := c.call("put", "me", queue, id, queue, `{"a":1}`, "0"); got != id {
		t.Fatalf("put: %s", got)
	}
	e.jobSeq, e.jobCreatedAt, e.jobID = e.newest(queue), e.workq.Clock.Now(), id
	w := k.take(e)
	if w == nil {
		t.Fatal("no worker gets the job")
	}
	before := c.job(id)
	if before.State != "running" || strings.Contains(c.call("pop", queue, "w", "1"), id) {
		t.Errorf("%s has the job, and it is %s", k.name, before.State)
	}
	answered, late := ends[end].run(e, w)
	parts := []string{"get: " + c.job(id).State, "job: " + e.state(e.jobSeq)}
	if answered != "" && answered != "nothing" && answered != "`+OK`" && answered != "`204`" {
		parts = append(parts, "worker: "+answered)
	}
	if late {
		parts = append(parts, "late finish: "+w.finish(true)+", get: "+c.job(id).State)
	}
	return strings.Join(parts, "; ")
}

// qlessEnds are the ways in which a worker of Qless ends its work.
var qlessEnds = []struct {
	name string
	run  func(c qlessClient, jid string) string
}{
	{"complete", func(c qlessClient, jid string) string { return c.call("complete", jid, "w", queue, `"done"`) }},
	{"fail", func(c qlessClient, jid string) string { return c.call("fail", jid, "w", "broken", "no way") }},
	{"retry", func(c qlessClient, jid string) string { return c.call("retry", jid, queue, "w") }},
	{"cancel", func(c qlessClient, jid string) string { return c.call("cancel", jid) }},
	{"lock expired", func(c qlessClient, _ string) string {
		c.e.advance(80 * time.Second)
		c.stage.Advance(0)
		return ""
	}},
}

// qlessWorker runs a job of another protocol with a worker of Qless.
func qlessWorker(t *testing.T, o origin, end int) string {
	t.Helper()
	e := newEnv(t, frontendtest.InMemory)
	c := e.dialQless()
	report := o.submit(e, jobTimes{ttr, ttl})
	seq := e.newest(queue)
	var popped []struct{ Jid, Data string }
	text := c.call("pop", queue, "w", "5")
	if err := json.Unmarshal([]byte(text), &popped); err != nil || len(popped) != 1 {
		t.Fatalf("pop: %s", text)
	}
	jid := popped[0].Jid
	if got := e.state(seq); got != "leased" {
		t.Errorf("a popped job is %s", got)
	}
	if reply := qlessEnds[end].run(c, jid); strings.HasPrefix(reply, "-") {
		t.Errorf("%s: %s", qlessEnds[end].name, reply)
	}
	return fmt.Sprintf("data: `%s`; get: %s; client: %s; job: %s", popped[0].Data, c.job(jid).State, report(),
		e.state(seq))
}

// TestQlessSharingTable runs every cell of the tables about Qless and compares the results with docs/sharing.md.
func TestQlessSharingTable(t *testing.T) {
	t.Parallel()
	var names []string
	for _, end := range qlessEnds {
		names = append(names, end.name)
	}
	sharingSection(t, section{
		name: "qless", submitted: "Qless put", works: "Qless worker", ends: names, submit: qlessJob, work: qlessWorker,
	})
}

// compareSection compares tables with the part of docs/sharing.md between the markers of a section.
func compareSection(t *testing.T, name, table string) {
	t.Helper()
	start := "<!-- " + name +
		": written by the tests of frontends/crossprotocol; run them with -update after a change -->\n"
	end := "\n<!-- end of " + name + " -->\n"
	sections.Lock()
	defer sections.Unlock()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), start)
	old, tail, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		t.Fatalf("the page has no markers for %s", name)
	}
	if old == table {
		return
	}
	if !*update {
		t.Fatalf("docs/sharing.md differs (run go test ./frontends/crossprotocol -update and review the diff):\n%s",
			table)
	}
	if err := os.WriteFile(page, []byte(head+start+table+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sections is locked by the test that writes the page.
var sections sync.Mutex

func TestQlessDependencyEndsWithAnotherProtocol(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	c := e.dialQless()
	c.call("put", "me", queue, id, queue, "{}", "0")
	c.call("put", "me", "second", "dependent", "K", "{}", "0", "depends", `["`+id+`"]`)
	if got := c.job("dependent").State; got != "depends" {
		t.Fatalf("the dependent is %s", got)
	}
	e.jobSeq, e.jobID = e.newest(queue), id
	takeByGearman(e).finish(true)
	if got := c.job("dependent").State; got != "waiting" {
		t.Errorf("after its dependency was completed by a Gearman worker, the dependent is %s", got)
	}
}

func TestQlessScheduleIsDueForOthersByTheLaterClock(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	c := e.dialQless()
	c.call("put", "me", queue, id, queue, "{}", "60")
	e.jobSeq, e.jobID = e.newest(queue), id
	if takeByWorkq(e) != nil {
		t.Fatal("a delayed job was given out at once")
	}
	e.advance(61 * time.Second)
	if takeByWorkq(e) == nil {
		t.Error("a job that is due by the wall clock was not given out")
	}
}

func TestQlessPauseIsSharedAcrossProtocols(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	c := e.dialQless()
	c.call("put", "me", queue, id, queue, "{}", "0")
	e.jobSeq, e.jobID = e.newest(queue), id
	c.call("pause", queue)
	if takeByGearman(e) != nil {
		t.Error("a Gearman worker got a job of a paused queue")
	}
	e.do(&core.PauseQueue{Queue: queue})
	if got := c.call("pop", queue, "w", "1"); !strings.Contains(got, id) {
		t.Errorf("pop after the queue was resumed: %s", got)
	}
}
