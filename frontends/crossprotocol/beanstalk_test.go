package crossprotocol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/beanstalk"
	"broker/frontends/frontendtest"
)

// beanstalkOf adds a front-end for Beanstalk clients.
func (e *env) beanstalkOf() *frontendtest.Stage {
	return frontendtest.NewStage(e.t, e.workq.Broker, e.workq.Clock, func(b core.Broker) frontends.Frontend {
		return beanstalk.New(access.Unrestricted(b, core.Beanstalk), beanstalk.Options{})
	}, nil)
}

// A Workq client waits for the result of its job, whatever the worker does with it.
func TestBeanstalkWorkerRunsJobsOfWorkqClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ commands, replies, state, outcome string }{
		{"delete 1\r\n", "DELETED\r\n", "done", "+OK 1\r\n" + id + " 1 0\r\n\r\n"},
		{"bury 1 1024\r\n", "BURIED\r\n", "dead", "+OK 1\r\n" + id + " 0 0\r\n\r\n"},
		{"release 1 1024 0\r\n", "RELEASED\r\n", "ready", ""},
		{"release 1 5 9\r\n", "RELEASED\r\n", "scheduled", ""},
	} {
		e := newEnv(t)
		client := e.workq.Dial("client")
		client.Send("add " + id + " q 60000 600000 5 -priority=7\r\nhello\r\nresult " + id + " 60000\r\n")
		client.Want("+OK\r\n")
		worker := e.beanstalkOf().Dial("worker")
		worker.Send("watch q\r\nreserve\r\n")
		worker.Want("WATCHING 2\r\nRESERVED 1 5\r\nhello\r\n")
		worker.Send("stats-job 1\r\n")
		if stats := worker.Rest(); !strings.Contains(string(stats), "\npri: 1017\n") ||
			!strings.Contains(string(stats), "\nttr: 60\n") {
			t.Errorf("%s", stats)
		}
		worker.Send(c.commands)
		worker.Want(c.replies)
		if got := e.state(1); got != c.state {
			t.Errorf("after %q the job is %s, want %s", c.commands, got, c.state)
		}
		e.advance(time.Second)
		if got := string(client.Rest()); got != c.outcome {
			t.Errorf("after %q the client has %q, want %q", c.commands, got, c.outcome)
		}
	}
}

// Jobs of Beanstalk clients are plain bytes for other workers, and keep their own rules.
func TestOtherWorkersRunJobsOfBeanstalkClients(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	client := e.beanstalkOf().Dial("client")
	client.Send("use q\r\nput 1020 0 60 5\r\nhello\r\nput 1020 0 60 5\r\nagain\r\n")
	client.Want("USING q\r\nINSERTED 1\r\nINSERTED 2\r\n")
	workq := e.workq.Dial("worker")
	workq.Send("lease q 0\r\n")
	workq.Want("+OK 1\r\n" + core.Alias(1) + " q 60000 5\r\nhello\r\n")
	client.Send("delete 1\r\nstats-job 1\r\n")
	client.Want("NOT_FOUND\r\n")
	if stats := string(client.Rest()); !strings.Contains(stats, "state: reserved\npri: 1020\n") {
		t.Error(stats)
	}
	workq.Send("fail " + core.Alias(1) + " 2\r\nno\r\n")
	workq.Want("+OK\r\n")
	client.Send("peek-buried\r\nkick 5\r\npeek-ready\r\n")
	client.Want("FOUND 1 5\r\nhello\r\nKICKED 1\r\nFOUND 1 5\r\nhello\r\n")
	workq.Send("lease q 0\r\ncomplete " + core.Alias(1) + " 0\r\n\r\n")
	workq.Want("+OK 1\r\n" + core.Alias(1) + " q 60000 5\r\nhello\r\n+OK\r\n")
	client.Send("peek 1\r\npeek-ready\r\n")
	client.Want("NOT_FOUND\r\nFOUND 2 5\r\nagain\r\n")
}

// beanstalkStats returns a Beanstalk client's view of a job: its state and the counters that are not zero.
func beanstalkStats(c *frontendtest.Client, seq uint64) string {
	c.Send(fmt.Sprintf("stats-job %d\r\n", seq))
	text := string(c.Rest())
	if text == "NOT_FOUND\r\n" {
		return "NOT_FOUND"
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "state":
			b.WriteString(value)
		case "reserves", "timeouts", "releases", "buries", "kicks":
			if value != "0" {
				b.WriteString(", " + key + " " + value)
			}
		}
	}
	return b.String()
}

// beanstalkSubmitted runs a Beanstalk job with a worker of another protocol.
func beanstalkSubmitted(t *testing.T, k workerKind, end int) string {
	t.Helper()
	e := newEnv(t, frontendtest.InMemory)
	c := e.beanstalkOf().Dial("client")
	c.Send("use " + queue + "\r\nput 1024 0 600 2\r\nhi\r\n")
	c.Want("USING " + queue + "\r\nINSERTED 1\r\n")
	e.jobSeq, e.jobCreatedAt = 1, e.workq.Clock.Now()
	w := k.take(e)
	if w == nil {
		t.Fatal("no worker gets the job")
	}
	if got := beanstalkStats(c, 1); got != "reserved, reserves 1" {
		t.Errorf("in the hands of %s the job is %s", k.name, got)
	}
	answered, late := ends[end].run(e, w)
	parts := []string{"stats-job: " + beanstalkStats(c, 1), "job: " + e.state(1)}
	if answered != "" && answered != "nothing" && answered != "`+OK`" && answered != "`204`" {
		parts = append(parts, "worker: "+answered)
	}
	if late {
		parts = append(parts, "late finish: "+w.finish(true)+", job: "+e.state(1))
	}
	return strings.Join(parts, "; ")
}

// beanstalkEnds are the ways in which a Beanstalk worker ends its work.
var beanstalkEnds = []struct {
	name string
	run  func(e *env, c *frontendtest.Client, seq uint64)
}{
	{"delete", func(_ *env, c *frontendtest.Client, seq uint64) {
		c.Send(fmt.Sprintf("delete %d\r\n", seq))
		c.Want("DELETED\r\n")
	}},
	{"release", func(_ *env, c *frontendtest.Client, seq uint64) {
		c.Send(fmt.Sprintf("release %d 1024 0\r\n", seq))
		c.Want("RELEASED\r\n")
	}},
	{"release with delay", func(_ *env, c *frontendtest.Client, seq uint64) {
		c.Send(fmt.Sprintf("release %d 1024 60\r\n", seq))
		c.Want("RELEASED\r\n")
	}},
	{"bury", func(_ *env, c *frontendtest.Client, seq uint64) {
		c.Send(fmt.Sprintf("bury %d 1024\r\n", seq))
		c.Want("BURIED\r\n")
	}},
	{"connection lost", func(_ *env, c *frontendtest.Client, _ uint64) { c.Hangup() }},
	{"ttr over", func(e *env, _ *frontendtest.Client, _ uint64) { e.advance(ttr) }},
}

// beanstalkWorker runs a job of another protocol with a Beanstalk worker.
func beanstalkWorker(t *testing.T, o origin, end int) string {
	t.Helper()
	e := newEnv(t, frontendtest.InMemory)
	stage := e.beanstalkOf()
	c := stage.Dial("worker")
	report := o.submit(e, jobTimes{ttr, ttl})
	seq := e.newest(queue)
	c.Send("watch " + queue + "\r\nreserve\r\n")
	c.Want("WATCHING 2\r\n")
	head := strings.Fields(c.ReadUntil("\r\n"))
	if len(head) != 3 || head[0] != "RESERVED" {
		t.Fatalf("reserve: %q", head)
	}
	body := strings.TrimSpace(c.ReadUntil("\r\n"))
	if got := e.state(seq); got != "leased" {
		t.Errorf("a reserved job is %s", got)
	}
	beanstalkEnds[end].run(e, c, seq)
	return fmt.Sprintf("body: `%s`; client: %s; job: %s", body, report(), e.state(seq))
}

// TestBeanstalkSharingTable runs every cell of the tables about Beanstalk and compares the results with
// docs/sharing.md.
func TestBeanstalkSharingTable(t *testing.T) {
	t.Parallel()
	var names []string
	for _, end := range beanstalkEnds {
		names = append(names, end.name)
	}
	sharingSection(t, section{
		name: "Beanstalk", submitted: "Beanstalk job", works: "Beanstalk worker", ends: names,
		submit: beanstalkSubmitted, work: beanstalkWorker,
	})
}
