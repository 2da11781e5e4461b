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

var update = flag.Bool("update", false, "write what is seen into docs/sharing.md")

const queue = "q"

// times of the jobs of these tests. A worker that goes on for ever is at the end of everything after lateness.
const (
	ttr      = 10 * time.Minute
	ttl      = 6 * time.Hour
	delay    = 5 * time.Minute
	lateness = time.Hour
	mortal   = 2 * time.Hour // a time to live that ends before the lease does
)

// order is what a job is submitted with.
type order struct{ ttr, ttl time.Duration }

// origin submits a job by one protocol. The answer tells what its submitter has been told since.
type origin struct {
	name   string
	submit func(h *hall, o order) (told func() string)
}

// worker has a job in hand.
type worker struct {
	finish func(ok bool) string // what the worker is answered
	conn   *frontendtest.Client
}

// taker is a kind of worker.
type taker struct {
	name string
	take func(h *hall) *worker // nil: there is nothing to take
}

// id is what clients that name their job call it.
const id = "6ba7b810-9dad-41d1-80b4-000000000001"

func origins() []origin {
	return []origin{
		{"Workq add", workqAdd(false)},
		{"Workq schedule", workqAdd(true)},
		{"Workq run", workqRun},
		{"Gearman background", gearmanBackground},
		{"Gearman foreground", gearmanForeground},
		{"Gearman epoch", gearmanEpoch},
		{"Faktory push", faktoryPush(false)},
		{"Faktory scheduled", faktoryPush(true)},
		{"Faktory batch", faktoryBatch},
	}
}

func workqAdd(scheduled bool) func(h *hall, o order) func() string {
	return func(h *hall, o order) func() string {
		c, waiter := h.dial(h.workq), h.dial(h.workq)
		if scheduled {
			at := h.workq.Clock.Now().Add(delay).Time().Format("2006-01-02T15:04:05Z")
			c.Send(fmt.Sprintf("schedule %s %s %d %d %s 2\r\nhi\r\n", id, queue, o.ttr.Milliseconds(), o.ttl.Milliseconds(), at))
		} else {
			c.Send(fmt.Sprintf("add %s %s %d %d 2\r\nhi\r\n", id, queue, o.ttr.Milliseconds(), o.ttl.Milliseconds()))
		}
		c.Want("+OK\r\n")
		waiter.Send(fmt.Sprintf("result %s 86400000\r\n", id))
		return func() string { return result(waiter) }
	}
}

// result tells the answer to result or run.
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

func workqRun(h *hall, o order) func() string {
	c := h.dial(h.workq)
	c.Send(fmt.Sprintf("run %s %s %d 5400000 2\r\nhi\r\n", id, queue, o.ttr.Milliseconds()))
	return func() string { return result(c) }
}

func gearmanBackground(h *hall, _ order) func() string {
	return gearmanSilent(h, packet(submitJobBg, queue, "", "hi"))
}

func gearmanEpoch(h *hall, _ order) func() string {
	at := h.gearman.Clock.Now().Add(delay).Time().Unix()
	return gearmanSilent(h, packet(submitJobEpoch, queue, "", fmt.Sprint(at), "hi"))
}

// gearmanSilent submits a job whose client hears nothing and may ask.
func gearmanSilent(h *hall, submit []byte) func() string {
	c := h.dial(h.gearman)
	c.SendBytes(submit)
	handle := h.one(c, jobCreated).fields[0]
	return func() string {
		c.SendBytes(packet(getStatus, handle))
		status := h.one(c, statusRes).fields
		known := map[string]string{"00": "unknown", "10": "known, waits", "11": "known, runs"}[status[1]+status[2]]
		return "GET_STATUS: " + known
	}
}

func gearmanForeground(h *hall, _ order) func() string {
	c := h.dial(h.gearman)
	c.SendBytes(packet(optionReq, "exceptions"))
	c.Rest()
	c.SendBytes(packet(submitJob, queue, "", "hi"))
	h.one(c, jobCreated)
	return func() string {
		if got := told(h.answers(c)); got != "" {
			return "`" + got + "`"
		}
		return "waits on"
	}
}

func faktoryPush(scheduled bool) func(h *hall, o order) func() string {
	return func(h *hall, o order) func() string {
		c := h.dialFaktory("")
		c.Send(fmt.Sprintf("PUSH {\"jid\":%q,\"jobtype\":%q,\"queue\":%q,\"args\":[\"hi\"],\"custom\":{\"track\":1%s}%s}\r\n",
			id, queue, queue, expiry(o), schedule(h, scheduled)))
		c.Want("+OK\r\n")
		return func() string {
			c.Send(fmt.Sprintf("TRACK GET %s\r\n", id))
			var track struct{ State string }
			h.object(c, &track)
			return "TRACK: " + track.State
		}
	}
}

func expiry(o order) string {
	if o.ttl < ttl {
		return fmt.Sprintf(",\"expires_in\":%d", int(o.ttl.Seconds()))
	}
	return ""
}

func schedule(h *hall, scheduled bool) string {
	if !scheduled {
		return ""
	}
	return fmt.Sprintf(",\"at\":%q", h.faktory.Clock.Now().Add(delay).Time().Format(time.RFC3339))
}

func faktoryBatch(h *hall, o order) func() string {
	c := h.dialFaktory("")
	c.Send(`BATCH NEW {"success":{"jobtype":"S","args":[],"queue":"callbacks"},"complete":{"jobtype":"C","args":[],"queue":"callbacks"}}` + "\r\n")
	bid := h.bulk(c)
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
		h.object(c, &s)
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

func takers() []taker {
	return []taker{{"Gearman worker", takeByGearman}, {"Faktory worker", takeByFaktory}, {"Workq worker", takeByWorkq}}
}

func takeByGearman(h *hall) *worker {
	c := h.dial(h.gearman)
	c.SendBytes(packet(canDo, queue))
	c.SendBytes(packet(grabJobUniq))
	got := h.answers(c)
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
		if answered := told(h.answers(c)); answered != "" {
			return "`" + answered + "`"
		}
		return "nothing"
	}}
}

func takeByFaktory(h *hall) *worker {
	c := h.dialFaktory("worker-1")
	c.Send("FETCH " + queue + "\r\n")
	if len(c.Rest()) == 0 {
		h.advance(3 * time.Second)
		if got := string(c.Rest()); got != "$-1\r\n" {
			h.t.Fatalf("FETCH: %q", got)
		}
		return nil
	}
	jid := core.MintedID(h.held, h.heldSince)
	if h.heldID != "" {
		jid = h.heldID
	}
	return &worker{conn: c, finish: func(ok bool) string {
		other := h.dialFaktory("") // the worker's own connection ends when it sends no BEAT
		if ok {
			other.Send(fmt.Sprintf("ACK {\"jid\":%q,\"result\":\"done\"}\r\n", jid))
		} else {
			other.Send(fmt.Sprintf("FAIL {\"jid\":%q,\"errtype\":\"Broken\",\"message\":\"no way\",\"backtrace\":[]}\r\n", jid))
		}
		return reply(other)
	}}
}

func takeByWorkq(h *hall) *worker {
	c := h.dial(h.workq)
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

// reply is one line.
func reply(c *frontendtest.Client) string {
	line := strings.TrimSpace(string(c.Rest()))
	if words := strings.Fields(line); len(words) > 2 && words[0] == "-ERR" {
		line = "-ERR " + words[1] + " " + words[2] + " " + words[3]
	}
	return "`" + line + "`"
}

// ends are the ways in which a job's time with a worker can end.
var ends = []struct {
	name string
	run  func(h *hall, w *worker) (answered string, late bool)
	with order
}{
	{"complete", func(_ *hall, w *worker) (string, bool) { return w.finish(true), false }, order{ttr, ttl}},
	{"fail", func(_ *hall, w *worker) (string, bool) { return w.finish(false), false }, order{ttr, ttl}},
	{"worker lost", func(_ *hall, w *worker) (string, bool) { w.conn.Hangup(); return "", false }, order{ttr, ttl}},
	{"lease expired", func(h *hall, _ *worker) (string, bool) { h.advance(lateness); return "", true }, order{ttr, ttl}},
	{"cancelled", func(h *hall, _ *worker) (string, bool) {
		c := h.dial(h.workq)
		name := h.heldID
		if name == "" {
			name = core.Alias(h.held)
		}
		c.Send("delete " + name + "\r\n")
		c.Want("+OK\r\n")
		return "", true
	}, order{ttr, ttl}},
	{"expired", func(h *hall, _ *worker) (string, bool) { h.advance(5 * time.Hour); return "", true }, order{2 * mortal, mortal}},
}

// cell plays one job.
func cell(t *testing.T, o origin, k taker, end int) string {
	t.Helper()
	h := enter(t, frontendtest.InMemory)
	e := ends[end]
	tellsClient := o.submit(h, e.with)
	h.held, h.heldSince, h.heldID = h.newest(queue), h.workq.Clock.Now(), id
	if strings.HasPrefix(o.name, "Gearman") {
		h.heldID = ""
	}
	if strings.Contains(o.name, "sched") || strings.Contains(o.name, "epoch") {
		h.advance(delay)
	}
	if e.name == "expired" && strings.HasPrefix(o.name, "Faktory") {
		h.advance(mortal + time.Second)
	}
	w := k.take(h)
	if w == nil {
		return fmt.Sprintf("no worker gets it; client: %s; job: %s", tellsClient(), h.state(h.held))
	}
	answered, late := e.run(h, w)
	client, state := tellsClient(), h.state(h.held)
	parts := []string{"client: " + client, "job: " + state}
	if answered != "" && answered != "nothing" && answered != "`+OK`" {
		parts = append(parts, "worker: "+answered)
	}
	if late {
		text := "late finish: " + w.finish(true)
		if after := h.state(h.held); after != state {
			text += ", and it counts: " + after
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// TestSharingTable plays every cell and compares the table with the one in docs/sharing.md.
func TestSharingTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, o := range origins() {
		fmt.Fprintf(&b, "\n### %s\n\n| end |", o.name)
		for _, k := range takers() {
			fmt.Fprintf(&b, " %s |", k.name)
		}
		b.WriteString("\n|---|---|---|---|\n")
		for i, e := range ends {
			fmt.Fprintf(&b, "| %s |", e.name)
			for _, k := range takers() {
				fmt.Fprintf(&b, " %s |", cell(t, o, k, i))
			}
			b.WriteString("\n")
		}
	}
	compare(t, b.String())
}

// The lines in the page between which the table stands.
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
		t.Fatal("the page has no place for the cells")
	}
	if old == table {
		return
	}
	if !*update {
		oldLines, lines := strings.Split(old, "\n"), strings.Split(table, "\n")
		for i := range lines {
			if i >= len(oldLines) || lines[i] != oldLines[i] {
				t.Fatalf("docs/sharing.md says otherwise (go test ./frontends/crossprotocol -update, and read):\n%s", lines[i])
			}
		}
		t.Fatal("docs/sharing.md has more cells than there are")
	}
	if err := os.WriteFile(page, []byte(head+tableStart+table+tableEnd+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
