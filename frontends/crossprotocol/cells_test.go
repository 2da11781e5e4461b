package crossprotocol

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends/frontendtest"
)

var update = flag.Bool("update", false, "write the results to docs/sharing.md")

const queue = "q"

// Times of the jobs under test. Every lease but those without a limit has expired after lateness.
const (
	ttr      = 10 * time.Minute
	ttl      = 6 * time.Hour
	delay    = 5 * time.Minute
	lateness = time.Hour
	shortTTL = 2 * time.Hour // ends before the lease
)

// jobTimes are the durations that a job is submitted with.
type jobTimes struct{ ttr, ttl time.Duration }

// origin is a way to submit a job. report returns what the submitter has received since then.
type origin struct {
	name   string
	submit func(e *env, o jobTimes) (report func() string)
	brief  bool // its client waits for minutes, not for hours
}

// worker is a worker with a leased job.
type worker struct {
	finish func(ok bool) string // returns the reply
	conn   *frontendtest.Client // nil: it has none
}

// workerKind is a worker of one protocol.
type workerKind struct {
	name string
	take func(e *env) *worker // nil if there was no job
}

// id is the job id that clients choose, if the protocol allows it.
const id = "6ba7b810-9dad-41d1-80b4-000000000001"

func origins() []origin {
	return []origin{
		{name: "Workq add", submit: workqAdd(false)},
		{name: "Workq schedule", submit: workqAdd(true)},
		{name: "Workq run", submit: workqRun},
		{name: "Gearman background", submit: gearmanBackground},
		{name: "Gearman foreground", submit: gearmanForeground},
		{name: "Gearman epoch", submit: gearmanEpoch},
		{name: "Faktory push", submit: faktoryPush(false)},
		{name: "Faktory scheduled", submit: faktoryPush(true)},
		{name: "Faktory batch", submit: faktoryBatch},
		{name: "HTTP submit", submit: httpSubmit(false)},
		{name: "HTTP scheduled", submit: httpSubmit(true)},
		{name: "HTTP wait", submit: httpWait(false), brief: true},
		{name: "HTTP ephemeral", submit: httpWait(true), brief: true},
	}
}

func workqAdd(scheduled bool) func(e *env, o jobTimes) func() string {
	return func(e *env, o jobTimes) func() string {
		c, waiter := e.dial(e.workq), e.dial(e.workq)
		if scheduled {
			at := e.workq.Clock.Now().Add(delay).Time().Format("2006-01-02T15:04:05Z")
			c.Send(fmt.Sprintf("schedule %s %s %d %d %s 2\r\nhi\r\n", id, queue, o.ttr.Milliseconds(),
				o.ttl.Milliseconds(), at))
		} else {
			c.Send(fmt.Sprintf("add %s %s %d %d 2\r\nhi\r\n", id, queue, o.ttr.Milliseconds(), o.ttl.Milliseconds()))
		}
		c.Want("+OK\r\n")
		waiter.Send(fmt.Sprintf("result %s 86400000\r\n", id))
		return func() string { return result(waiter) }
	}
}

// result formats the reply to result or run.
func result(c *frontendtest.Client) string {
	text := string(c.Rest())
	if text == "" {
		return "waits on"
	}
	text = strings.TrimPrefix(text, "+OK 1\r\n"+id+" ")
	lines := strings.Split(strings.TrimSuffix(text, "\r\n"), "\r\n")
	if len(lines) == 2 { // success and size, then the body
		return fmt.Sprintf("`%s`, result `%s`", lines[0][:1], lines[1])
	}
	return "`" + lines[0] + "`"
}

func workqRun(e *env, o jobTimes) func() string {
	c := e.dial(e.workq)
	c.Send(fmt.Sprintf("run %s %s %d 5400000 2\r\nhi\r\n", id, queue, o.ttr.Milliseconds()))
	return func() string { return result(c) }
}

func gearmanBackground(e *env, _ jobTimes) func() string {
	return gearmanSilent(e, packet(submitJobBg, queue, "", "hi"))
}

func gearmanEpoch(e *env, _ jobTimes) func() string {
	at := e.gearman.Clock.Now().Add(delay).Time().Unix()
	return gearmanSilent(e, packet(submitJobEpoch, queue, "", fmt.Sprint(at), "hi"))
}

// gearmanSilent submits a background job: its client only receives replies to its own requests.
func gearmanSilent(e *env, submit []byte) func() string {
	c := e.dial(e.gearman)
	c.SendBytes(submit)
	handle := e.one(c, jobCreated).fields[0]
	return func() string {
		c.SendBytes(packet(getStatus, handle))
		status := e.one(c, statusRes).fields
		known := map[string]string{"00": "unknown", "10": "known, waits", "11": "known, runs"}[status[1]+status[2]]
		return "GET_STATUS: " + known
	}
}

func gearmanForeground(e *env, _ jobTimes) func() string {
	c := e.dial(e.gearman)
	c.SendBytes(packet(optionReq, "exceptions"))
	c.Rest()
	c.SendBytes(packet(submitJob, queue, "", "hi"))
	e.one(c, jobCreated)
	return func() string {
		if got := describe(e.answers(c)); got != "" {
			return "`" + got + "`"
		}
		return "waits on"
	}
}

func faktoryPush(scheduled bool) func(e *env, o jobTimes) func() string {
	return func(e *env, o jobTimes) func() string {
		c := e.dialFaktory("")
		c.Send(fmt.Sprintf("PUSH {\"jid\":%q,\"jobtype\":%q,\"queue\":%q,\"args\":[\"hi\"],\"custom\":{\"track\":1%s}%s}\r\n",
			id, queue, queue, expiry(o), schedule(e, scheduled)))
		c.Want("+OK\r\n")
		return func() string {
			c.Send(fmt.Sprintf("TRACK GET %s\r\n", id))
			var track struct{ State string }
			e.object(c, &track)
			return "TRACK: " + track.State
		}
	}
}

func expiry(o jobTimes) string {
	if o.ttl < ttl {
		return fmt.Sprintf(",\"expires_in\":%d", int(o.ttl.Seconds()))
	}
	return ""
}

func schedule(e *env, scheduled bool) string {
	if !scheduled {
		return ""
	}
	return fmt.Sprintf(",\"at\":%q", e.faktory.Clock.Now().Add(delay).Time().Format(time.RFC3339))
}

func faktoryBatch(e *env, o jobTimes) func() string {
	c := e.dialFaktory("")
	c.Send(
		`BATCH NEW {"success":{"jobtype":"S","args":[],"queue":"callbacks"},"complete":{"jobtype":"C","args":[],"queue":"callbacks"}}` +
			"\r\n")
	bid := e.bulk(c)
	c.Send(fmt.Sprintf("PUSH {\"jid\":%q,\"jobtype\":%q,\"queue\":%q,\"args\":[\"hi\"],\"custom\":{\"bid\":%q%s}}\r\n",
		id, queue, queue, bid, expiry(o)))
	c.Want("+OK\r\n")
	c.Send("BATCH COMMIT " + bid + "\r\n")
	c.Want("+OK\r\n")
	return func() string {
		c.Send("BATCH STATUS " + bid + "\r\n")
		var s struct {
			Pending, Failed int
			Complete        string `json:"complete_st"`
			Success         string `json:"success_st"`
		}
		e.object(c, &s)
		text := fmt.Sprintf("BATCH: pending %d, failed %d", s.Pending, s.Failed)
		if s.Complete != "" {
			text += ", complete runs"
		}
		if s.Success != "" {
			text += ", success runs"
		}
		return text
	}
}

func workerKinds() []workerKind {
	return []workerKind{
		{"Gearman worker", takeByGearman},
		{"Faktory worker", takeByFaktory},
		{"Workq worker", takeByWorkq},
		{"HTTP worker", takeByHTTP},
	}
}

func takeByGearman(e *env) *worker {
	c := e.dial(e.gearman)
	c.SendBytes(packet(canDo, queue))
	c.SendBytes(packet(grabJobUniq))
	got := e.answers(c)
	if len(got) == 1 && got[0].typ == noJob {
		return nil
	}
	handle := got[0].fields[0]
	return &worker{conn: c, finish: func(ok bool) string {
		if ok {
			c.SendBytes(packet(workComplete, handle, "done"))
		} else {
			c.SendBytes(packet(workFail, handle))
		}
		if answered := describe(e.answers(c)); answered != "" {
			return "`" + answered + "`"
		}
		return "nothing"
	}}
}

func takeByFaktory(e *env) *worker {
	c := e.dialFaktory("worker-1")
	c.Send("FETCH " + queue + "\r\n")
	if len(c.Rest()) == 0 {
		e.advance(3 * time.Second)
		if got := string(c.Rest()); got != "$-1\r\n" {
			e.t.Fatalf("FETCH: %q", got)
		}
		return nil
	}
	jid := core.MintedID(e.jobSeq, e.jobCreatedAt)
	if e.jobID != "" {
		jid = e.jobID
	}
	return &worker{conn: c, finish: func(ok bool) string {
		other := e.dialFaktory("") // the worker's own connection is closed without BEAT
		if ok {
			other.Send(fmt.Sprintf("ACK {\"jid\":%q,\"result\":\"done\"}\r\n", jid))
		} else {
			other.Send(fmt.Sprintf(
				"FAIL {\"jid\":%q,\"errtype\":\"Broken\",\"message\":\"no way\",\"backtrace\":[]}\r\n", jid))
		}
		return reply(other)
	}}
}

func takeByWorkq(e *env) *worker {
	c := e.dial(e.workq)
	c.Send("lease " + queue + " 0\r\n")
	text := string(c.Rest())
	if text == "-TIMEOUT\r\n" {
		return nil
	}
	name := strings.Fields(strings.TrimPrefix(text, "+OK 1\r\n"))[0]
	return &worker{conn: c, finish: func(ok bool) string {
		verb, body := "complete", "done"
		if !ok {
			verb, body = "fail", "no way"
		}
		c.Send(fmt.Sprintf("%s %s %d\r\n%s\r\n", verb, name, len(body), body))
		return reply(c)
	}}
}

// reply formats a one-line reply.
func reply(c *frontendtest.Client) string {
	line := strings.TrimSpace(string(c.Rest()))
	if words := strings.Fields(line); len(words) > 2 && words[0] == "-ERR" {
		line = "-ERR " + words[1] + " " + words[2] + " " + words[3]
	}
	return "`" + line + "`"
}

// ends are the ways in which a worker can lose or finish a job.
var ends = []struct {
	name string
	run  func(e *env, w *worker) (answered string, late bool)
	with jobTimes
}{
	{"complete", func(_ *env, w *worker) (string, bool) { return w.finish(true), false }, jobTimes{ttr, ttl}},
	{"fail", func(_ *env, w *worker) (string, bool) { return w.finish(false), false }, jobTimes{ttr, ttl}},
	{"worker lost", func(_ *env, w *worker) (string, bool) {
		if w.conn != nil {
			w.conn.Hangup()
		}
		return "", false
	}, jobTimes{ttr, ttl}},
	{"lease expired", func(e *env, _ *worker) (string, bool) {
		e.advance(lateness)
		return "", true
	}, jobTimes{ttr, ttl}},
	{"cancelled", func(e *env, _ *worker) (string, bool) {
		c := e.dial(e.workq)
		name := e.jobID
		if name == "" {
			name = core.Alias(e.jobSeq)
		}
		c.Send("delete " + name + "\r\n")
		c.Want("+OK\r\n")
		return "", true
	}, jobTimes{ttr, ttl}},
	{"expired", func(e *env, _ *worker) (string, bool) {
		e.advance(5 * time.Hour)
		return "", true
	}, jobTimes{2 * shortTTL, shortTTL}},
}

// cell runs one job and returns the text of its table cell.
func cell(t *testing.T, o origin, k workerKind, end int) string {
	t.Helper()
	e := newEnv(t, frontendtest.InMemory)
	how := ends[end]
	times := how.with
	if o.brief {
		times = httpTimes
		if how.name == "expired" {
			times = httpMortal
		}
	}
	report := o.submit(e, times)
	e.jobSeq, e.jobCreatedAt, e.jobID = e.newest(queue), e.workq.Clock.Now(), id
	if strings.HasPrefix(o.name, "Gearman") {
		e.jobID = ""
	}
	if strings.Contains(o.name, "sched") || strings.Contains(o.name, "epoch") {
		e.advance(delay)
	}
	if how.name == "expired" && strings.HasPrefix(o.name, "Faktory") {
		e.advance(shortTTL + time.Second)
	}
	w := k.take(e)
	if w == nil {
		return fmt.Sprintf("no worker gets it; client: %s; job: %s", report(), e.state(e.jobSeq))
	}
	var answered string
	late := true
	if o.brief && strings.Contains(how.name, "expired") {
		e.advance(6 * time.Minute)
	} else {
		answered, late = how.run(e, w)
	}
	client, state := report(), e.state(e.jobSeq)
	parts := []string{"client: " + client, "job: " + state}
	if answered != "" && answered != "nothing" && answered != "`+OK`" && answered != "`204`" {
		parts = append(parts, "worker: "+answered)
	}
	if late {
		text := "late finish: " + w.finish(true)
		if after := e.state(e.jobSeq); after != state {
			text += ", and it counts: " + after
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// TestSharingTable runs every cell and compares the results with the table in docs/sharing.md.
func TestSharingTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, o := range origins() {
		fmt.Fprintf(&b, "\n### %s\n\n| end |", o.name)
		for _, k := range workerKinds() {
			fmt.Fprintf(&b, " %s |", k.name)
		}
		b.WriteString("\n|---|---|---|---|---|\n")
		for i, end := range ends {
			fmt.Fprintf(&b, "| %s |", end.name)
			for _, k := range workerKinds() {
				fmt.Fprintf(&b, " %s |", inBubble(t, func(t *testing.T) string { return cell(t, o, k, i) }))
			}
			b.WriteString("\n")
		}
	}
	compare(t, b.String())
}

// The table in the page, and the lines around it.
const (
	page       = "../../docs/sharing.md"
	tableStart = "<!-- cells: written by the tests of frontends/crossprotocol; run them with -update after a change -->\n"
	tableEnd   = "\n<!-- end of cells -->\n"
)

func compare(t *testing.T, table string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), tableStart)
	old, tail, foundEnd := strings.Cut(rest, tableEnd)
	if !found || !foundEnd {
		t.Fatal("the page has no markers for the table")
	}
	if old == table {
		return
	}
	if !*update {
		oldLines, lines := strings.Split(old, "\n"), strings.Split(table, "\n")
		for i := range lines {
			if i >= len(oldLines) || lines[i] != oldLines[i] {
				t.Fatalf(
					"docs/sharing.md differs (run go test ./frontends/crossprotocol -update and review the diff):\n%s",
					lines[i])
			}
		}
		t.Fatal("docs/sharing.md has more cells than the test")
	}
	if err := os.WriteFile(page, []byte(head+tableStart+table+tableEnd+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
