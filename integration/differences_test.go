package integration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// difference is a request that the broker answers in another way than the server whose protocol it speaks, on purpose.
type difference struct {
	what string
	// observe sends the request and says in a few words what came of it.
	observe func(t *testing.T, address string) string
	why     string
}

var gearmandDifferences = []difference{
	{
		"a client that waits for the result joins a background job by its unique, and leaves", observeJoinedJob,
		"the client that submitted the background job has been told that it is accepted",
	},
	{
		"SUBMIT_JOB_SCHED", observeSched,
		"the protocol has it; the job runs once, at the next minute that matches",
	},
	{
		"SUBMIT_REDUCE_JOB", observeReduce,
		"a connection that is just closed says nothing; no published client sends this packet",
	},
}

var faktoryDifferences = []difference{
	{
		"PUSH of the same job twice", observePushTwice,
		"a client that lost the reply repeats its PUSH; the job must not run twice for that",
	},
	{
		"PUSH of two jobs with the same arguments and `custom.unique_for`", observeUnique,
		"unique jobs are included, as in Faktory Enterprise",
	},
	{
		"PUSH of a scheduled job with the queue `a/b`, which FETCH could not name", observeBadQueue,
		"the client learns of its mistake at once",
	},
	{
		"BATCH NEW", observeFaktory(`BATCH NEW {"description": "x", "success": {"jobtype": "done", "args": []}}`),
		"batches are included, as in Faktory Enterprise",
	},
	{
		"TRACK GET", observeFaktory("TRACK GET abcdefgh"),
		"tracking is included, as in Faktory Enterprise",
	},
	{
		"ACK with a member `result`", observeResult,
		"clients of the other protocols can wait for the result",
	},
}

// observeJoinedJob takes gearmand's answer from the longest of several pauses: it drops the job some time after it has
// closed the connection of the client that left, and nothing shows when.
func observeJoinedJob(t *testing.T, address string) string {
	for _, pause := range []time.Duration{0, 100 * time.Millisecond, time.Second, 15 * time.Second} {
		if !joinedJobRuns(t, address, fmt.Sprintf("joined-%v", pause), pause) {
			return "the job is dropped"
		}
	}
	return "the job runs"
}

// joinedJobRuns tells whether a worker gets a background job after a client that waited for it too has left.
func joinedJobRuns(t *testing.T, address, function string, pause time.Duration) bool {
	c, err := gearmanclient.Dial(address)
	check(t, err)
	defer func() { _ = c.Close() }() // every request was answered
	_, err = c.Submit(gearmanclient.SubmitJobBg, function, "u", "x")
	check(t, err)
	waiting, err := gearmanclient.Dial(address)
	check(t, err)
	_, err = waiting.Submit(gearmanclient.SubmitJob, function, "u", "x")
	check(t, err)
	_ = waiting.Close()                   // it leaves
	harness.Eventually(t, func() string { // until the server has noticed
		workers, err := c.AdminList("workers")
		check(t, err)
		if len(workers) > 1 {
			return strings.Join(workers, "\n")
		}
		return ""
	})
	time.Sleep(pause)
	check(t, c.Send(gearmanclient.CanDo, function))
	check(t, c.Send(gearmanclient.GrabJob))
	p, err := c.Read(harness.Patience)
	check(t, err)
	return p.Type == gearmanclient.JobAssign
}

// observeGearmanPacket sends a packet and an ECHO_REQ.
func observeGearmanPacket(t *testing.T, address string, kind gearmanclient.Type, args ...string) string {
	c, err := gearmanclient.Dial(address)
	check(t, err)
	defer func() { _ = c.Close() }() // every request was answered
	check(t, c.Send(kind, args...))
	check(t, c.Send(gearmanclient.EchoReq, "x"))
	p, err := c.Read(harness.Patience)
	switch {
	case err != nil:
		return "the connection is closed"
	case p.Type == gearmanclient.JobCreated:
		return "JOB_CREATED"
	case p.Type == gearmanclient.Error:
		return "ERROR " + p.Args(2)[0]
	}
	return "no reply"
}

func observeSched(t *testing.T, address string) string {
	return observeGearmanPacket(t, address, 35, "scheduled", "u", "0", "12", "1", "1", "*", "x")
}

func observeReduce(t *testing.T, address string) string {
	return observeGearmanPacket(t, address, 37, "map", "u", "reduce", "x")
}

// faktorySession sends lines to a Faktory server.
type faktorySession struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func openFaktorySession(t *testing.T, address string) *faktorySession {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // every command was answered
	s := &faktorySession{t: t, conn: conn, r: bufio.NewReader(conn)}
	s.reply()
	s.call(`HELLO {"v":2,"wid":"observer","hostname":"x","pid":1,"labels":[]}`)
	return s
}

// call sends a line and returns the reply: the text of strings, null for none.
func (s *faktorySession) call(line string) string {
	s.t.Helper()
	_, err := fmt.Fprint(s.conn, line+"\r\n")
	check(s.t, err)
	return s.reply()
}

func (s *faktorySession) reply() string {
	s.t.Helper()
	line, err := s.r.ReadString('\n')
	check(s.t, err)
	line = strings.TrimSpace(line)
	digits, isBulk := strings.CutPrefix(line, "$")
	if !isBulk {
		return line
	}
	size, err := strconv.Atoi(digits)
	check(s.t, err)
	if size < 0 {
		return "null"
	}
	bulk := make([]byte, size+2)
	_, err = io.ReadFull(s.r, bulk)
	check(s.t, err)
	return string(bulk[:size])
}

// waiting is the number of jobs in a queue.
func (s *faktorySession) waiting(queue string) int {
	s.t.Helper()
	var info struct {
		Faktory struct{ Queues map[string]int }
	}
	check(s.t, json.Unmarshal([]byte(s.call("INFO")), &info))
	return info.Faktory.Queues[queue]
}

// replyWords is what a table says of a reply.
func replyWords(reply string) string {
	switch {
	case strings.HasPrefix(reply, "-"):
		code, _, _ := strings.Cut(reply[1:], " ")
		return "`" + code + "`"
	case strings.HasPrefix(reply, "+"):
		return "`OK`"
	}
	return "it works"
}

func observeFaktory(line string) func(*testing.T, string) string {
	return func(t *testing.T, address string) string {
		return replyWords(openFaktorySession(t, address).call(line))
	}
}

func observePushTwice(t *testing.T, address string) string {
	s := openFaktorySession(t, address)
	const push = `PUSH {"jid":"twice-twice","jobtype":"A","queue":"twice","args":[1],"created_at":"2030-01-01T00:00:00Z"}`
	words := replyWords(s.call(push)) + ", " + replyWords(s.call(push))
	return words + fmt.Sprintf("; %d in the queue", s.waiting("twice"))
}

func observeUnique(t *testing.T, address string) string {
	s := openFaktorySession(t, address)
	const push = `PUSH {"jid":"unique-%d","jobtype":"A","queue":"unique","args":[1],"custom":{"unique_for":60}}`
	words := replyWords(s.call(fmt.Sprintf(push, 1))) + ", " + replyWords(s.call(fmt.Sprintf(push, 2)))
	return words + fmt.Sprintf("; %d in the queue", s.waiting("unique"))
}

func observeBadQueue(t *testing.T, address string) string {
	at := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	return replyWords(openFaktorySession(t,
		address).call(`PUSH {"jid":"bad-queue","jobtype":"A","queue":"a/b","args":[],"at":"` + at + `"}`))
}

func observeResult(t *testing.T, address string) string {
	s := openFaktorySession(t, address)
	s.call(`PUSH {"jid":"with-result","jobtype":"A","queue":"results","args":[]}`)
	s.call("FETCH results")
	return replyWords(s.call(`ACK {"jid":"with-result","result":[1]}`))
}

// The marks around the tables in docs/faq.md.
const (
	differencesBegin = "<!-- differences: written by TestDeliberateDifferences of the integration tests; run it with -update after a change -->\n"
	differencesEnd   = "<!-- end of differences -->"
)

// TestDeliberateDifferences plays what the broker does in another way than gearmand and Faktory on these servers and on
// the broker, and checks that docs/faq.md says so.
func TestDeliberateDifferences(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	harness.Need(t, "gearmand", "redis-server")
	b := harness.Start(t, harness.Options{})
	gearmand, _ := startGearmandSource(t, b)
	faktory, _ := startFaktorySource(t, b)
	text := differenceTable(t, "gearmand 1.1.20", gearmand, b.Gearman, gearmandDifferences) + "\n" +
		differenceTable(t, "Faktory "+strings.TrimPrefix(server.Faktory, "v"), faktory, b.Faktory, faktoryDifferences)

	root, err := server.Root()
	check(t, err)
	file := filepath.Join(root, "docs", "faq.md")
	page, err := os.ReadFile(file)
	check(t, err)
	before, rest, found := strings.Cut(string(page), differencesBegin)
	_, after, closed := strings.Cut(rest, differencesEnd)
	if !found || !closed {
		t.Fatal("docs/faq.md has no marks for the differences")
	}
	want := before + differencesBegin + text + differencesEnd + after
	if *updateTranscripts {
		check(t, os.WriteFile(file, []byte(want), 0o600))
		return
	}
	if want != string(page) {
		t.Errorf("docs/faq.md (run with -update, and read the difference):\n%s", firstDifference(want, string(page)))
	}
}

// differenceTable observes differences on both servers. A difference that no longer exists is an error.
func differenceTable(t *testing.T, name, reference, ours string, differences []difference) string {
	t.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "| request | %s | broker | reason |\n|---|---|---|---|\n", name)
	for _, d := range differences {
		there, here := d.observe(t, reference), d.observe(t, ours)
		if there == here {
			t.Errorf("%s: %s on both servers", d.what, here)
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", d.what, there, here, d.why)
	}
	return table.String()
}
