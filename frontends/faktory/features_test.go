package faktory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// otherClient is a client of another protocol on the same broker.
type otherClient struct {
	s      *frontendtest.Stage
	client core.ClientID
}

func newOtherClient(s *frontendtest.Stage, p core.Protocol) *otherClient {
	return &otherClient{s: s, client: s.Broker.Open(core.ClientOptions{Protocol: p, Wake: func() {}})}
}

// do runs one operation.
func (n *otherClient) do(op core.Op) []core.Reply {
	return n.s.Broker.Do(n.client, []core.Op{op}, nil)
}

func (n *otherClient) submit(t testing.TB, job *core.Job, watch core.Watch) {
	t.Helper()
	if r := n.do(&core.Submit{Job: job, Watch: watch}); len(r) != 1 || r[0].Kind != core.Submitted {
		t.Fatalf("submit %+v: %+v", job, r)
	}
}

// outcome returns the outcome that the other client has received.
func (n *otherClient) outcome(t testing.TB) *core.Outcome {
	t.Helper()
	for _, r := range n.s.Broker.Do(n.client, nil, nil) {
		if r.Kind == core.Ended {
			return r.Outcome
		}
	}
	t.Fatal("nobody told how the job ended")
	return nil
}

func TestFaktoryWorkerRunsJobOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	s := setup(t)
	g := newOtherClient(s, core.Gearman)
	w := dial(s, "worker", "w1")

	g.submit(t, &core.Job{Queue: "reverse", Body: []byte("hello"), Origin: core.Gearman, Ephemeral: true},
		core.WatchStream)
	w.Send("FETCH reverse\r\n")
	job := object(t, w)
	if job["jobtype"] != "reverse" || fmt.Sprint(job["args"]) != "[hello]" || job["retry"] != json.Number("0") ||
		at(job, "custom", "broker", "from") != "gearman" || at(job, "custom", "broker", "encoding") != "text" {
		t.Errorf("fetched %v", job)
	}
	w.Send(fmt.Sprintf("ACK {\"jid\":%q,\"result\":\"olleh\"}\r\n", job["jid"]))
	w.Want("+OK\r\n")
	if o := g.outcome(t); !o.Success || string(o.Result) != "olleh" {
		t.Errorf("outcome %+v", o)
	}

	// FAIL ends the job as failed, because its own retry policy says so.
	g.submit(t, &core.Job{Queue: "reverse", Body: []byte("again"), Origin: core.Gearman, Ephemeral: true},
		core.WatchStream)
	w.Send("FETCH reverse\r\n")
	job = object(t, w)
	w.Send(fmt.Sprintf("FAIL {\"jid\":%q,\"errtype\":\"E\",\"message\":\"m\"}\r\n", job["jid"]))
	w.Want("+OK\r\n")
	if o := g.outcome(t); o.Success || o.Failure == nil || o.Failure.Type != "E" || o.Failure.Message != "m" {
		t.Errorf("outcome %+v", o)
	}
}

func TestWorkerOfAnotherProtocolRunsFaktoryJob(t *testing.T) {
	t.Parallel()
	s := setup(t)
	g := newOtherClient(s, core.Gearman)
	p := dial(s, "producer", "")
	p.Send("PUSH {\"jid\":\"12345678\",\"queue\":\"q\",\"jobtype\":\"x\",\"args\":[1, 2.50],\"retry\":1}\r\n")
	p.Want("+OK\r\n")
	lease := &core.Lease{Tag: 1, Queues: []string{"q"}, Holder: core.HeldByConn}
	r := g.do(lease)
	if len(r) != 1 || r[0].Kind != core.Assigned || string(r[0].Job.Body) != "[1, 2.50]" {
		t.Fatalf("leased %+v", r)
	}
	g.do(&core.Fail{
		Ref: core.Ref{Seq: r[0].Seq}, Authority: core.ByHolder,
		Failure: &core.Failure{Exception: true, Data: []byte("oops")},
	})
	p.Send("INFO\r\n")
	if got := at(object(t, p), "faktory", "sets", "retries"); got != number(1) {
		t.Errorf("%v in retries: the policy is the job's", got)
	}
	s.Advance(time.Minute)
	p.Send("FETCH q\r\n")
	if job := object(t, p); at(job, "failure", "message") != "oops" || at(job, "failure", "errtype") != "unknown" {
		t.Errorf("fetched %v", job)
	}
}

func TestResultOfTrackedJobIsKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ result, want string }{
		{`"text"`, "text"},
		{`{"a":[1.50]}`, `{"a":[1.50]}`},
		{`null`, "null"},
		{`12345678901234567890`, "12345678901234567890"},
	} {
		s := setup(t)
		n := newOtherClient(s, core.Workq)
		p := dial(s, "client", "")
		p.Send(
			"PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"args\":[],\"custom\":{\"track\":1}}\r\nFETCH default\r\n",
		)
		p.Want("+OK\r\n")
		object(t, p)
		p.Send("ACK {\"jid\":\"12345678\",\"result\":" + c.result + "}\r\n")
		p.Want("+OK\r\n")
		r := n.do(&core.Await{Ref: core.Ref{ID: "12345678"}})
		if len(r) != 1 || r[0].Kind != core.Ended || string(r[0].Outcome.Result) != c.want {
			t.Errorf("%s: %+v", c.result, r)
		}
	}
}

func TestFlushOptionDecidesWhichJobsAreRemoved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flush          Flush
		reply          string
		ours, theirs   int // jobs left in the queues
		processedAfter json.Number
	}{
		{FlushFaktory, "+OK\r\n", 0, 1, "0"},
		{FlushAll, "+OK\r\n", 0, 0, "0"},
		{FlushOff, "-ERR FLUSH is not allowed here\r\n", 1, 1, "1"},
	} {
		s, _ := stageWith(t, Options{Flush: c.flush})
		n := newOtherClient(s, core.Workq)
		n.submit(t, &core.Job{ID: "theirs", Queue: "theirs", Origin: core.Workq}, core.WatchNone)
		p := dial(s, "client", "")
		p.Send("PUSH {\"jid\":\"12345678\",\"queue\":\"ours\",\"jobtype\":\"x\",\"args\":[]}\r\nFETCH ours\r\nACK {\"jid\":\"12345678\"}\r\n" +
			"PUSH {\"jid\":\"12345678\",\"queue\":\"ours\",\"jobtype\":\"x\",\"args\":[]}\r\n")
		p.Want("+OK\r\n")
		object(t, p)
		p.Want("+OK\r\n+OK\r\n")
		p.Send("FLUSH\r\n")
		p.Want(c.reply)
		p.Send("INFO\r\n")
		info := object(t, p)
		want := fmt.Sprintf("map[ours:%d theirs:%d]", c.ours, c.theirs)
		if got := fmt.Sprint(at(info, "faktory", "queues")); got != want {
			t.Errorf("%s: queues %s, want %s", c.flush, got, want)
		}
		if got := at(info, "faktory", "total_processed"); got != c.processedAfter {
			t.Errorf("%s: %v processed", c.flush, got)
		}
	}
}

func TestClientsDoNotSeeTheNamespace(t *testing.T) {
	t.Parallel()
	s, f := stageWith(t, Options{Options: frontends.Options{Namespace: "f."}})
	n := newOtherClient(s, core.Workq)
	n.submit(t, &core.Job{ID: "theirs-1", Queue: "q", Origin: core.Workq}, core.WatchNone)
	n.submit(t, &core.Job{ID: "theirs-2", Queue: "q", Origin: core.Workq, ReadyAt: s.Broker.Now().Add(time.Hour)},
		core.WatchNone)
	n.submit(t, &core.Job{ID: "theirs-3", Queue: "f.q", Body: []byte("x"), Origin: core.Workq}, core.WatchNone)
	p := dial(s, "client", "")
	p.Send(
		"PUSH {\"jid\":\"12345678\",\"queue\":\"q\",\"jobtype\":\"x\",\"args\":[],\"at\":\"2031-01-01T00:00:00Z\"}\r\nINFO\r\n",
	)
	p.Want("+OK\r\n")
	info := object(t, p)
	if got := fmt.Sprintf("%v %v", at(info, "faktory", "queues"),
		at(info, "faktory", "sets", "scheduled")); got != "map[q:1] 1" {
		t.Errorf("sees %s", got)
	}
	if got := string(f.Info()); !strings.Contains(got,
		`"queues":{"q":1},"sets":{"dead":0,"retries":0,"scheduled":1,"working":0}`) {
		t.Errorf("Info tells %s", got)
	}
	p.Send("FETCH q\r\n")
	if job := object(t, p); job["queue"] != "q" || job["jobtype"] != "q" || job["jid"] != "theirs-3" {
		t.Errorf("fetched %v", job)
	}
	p.Send("QUEUE LATENCY q\r\nQUEUE PAUSE *\r\nMUTATE {\"cmd\":\"clear\",\"target\":\"scheduled\"}\r\nQUEUE REMOVE *\r\n" +
		"MUTATE {\"cmd\":\"discard\",\"target\":\"scheduled\",\"filter\":{\"jids\":[\"theirs-2\"]}}\r\n" +
		"MUTATE {\"cmd\":\"kill\",\"target\":\"scheduled\"}\r\n")
	p.Want("$7\r\n{\"q\":0}\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n")
	for _, id := range []string{"theirs-1", "theirs-2"} {
		r := n.do(&core.Inspect{Ref: core.Ref{ID: id}})
		if len(r) != 1 || r[0].Kind != core.Inspected || r[0].Info.State == core.Dead {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if r := n.do(&core.InspectQueue{Queue: "q"}); r[0].Queues[0].Paused {
		t.Error("a queue outside is paused")
	}
}

// Only the client that sent a long command waits for it.
func TestLongCommandsRunInPages(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := dial(s, "producer", "")
	const jobs = 2500
	for n := 0; n < jobs; n += 500 {
		var b strings.Builder
		for i := n; i < n+500; i++ {
			fmt.Fprintf(&b, `,{"jid":"page-%06d","queue":"q%d","jobtype":"T%d","args":[],"at":"2031-01-01T00:00:00Z"}`,
				i, i%3, i%2)
		}
		p.Send("PUSHB [" + b.String()[1:] + "]\r\n")
		p.Want("$2\r\n{}\r\n")
	}
	scheduled := func(want int) {
		t.Helper()
		p.Send("INFO\r\n")
		if got := at(object(t, p), "faktory", "sets", "scheduled"); got != number(want) {
			t.Fatalf("%v scheduled, want %d", got, want)
		}
	}
	scheduled(jobs)
	p.Send("MUTATE {\"cmd\":\"discard\",\"target\":\"scheduled\",\"filter\":{\"jobtype\":\"T1\"}}\r\n")
	p.Want("+OK\r\n")
	scheduled(jobs / 2)
	p.Send(
		"MUTATE {\"cmd\":\"requeue\",\"target\":\"scheduled\",\"filter\":{\"regexp\":\"*\\\"queue\\\":\\\"q[01]\\\"*\"}}\r\n",
	)
	p.Want("+OK\r\n")
	scheduled(417)
	p.Send("QUEUE REMOVE q0 q1\r\nMUTATE {\"cmd\":\"clear\",\"target\":\"scheduled\"}\r\nINFO\r\n")
	p.Want("+OK\r\n+OK\r\n")
	info := object(t, p)
	if got := fmt.Sprintf("%v %v", at(info, "faktory", "sets", "scheduled"),
		at(info, "faktory", "total_enqueued")); got != "0 0" {
		t.Errorf("left over: %s", got)
	}
}

// FLUSH removes more batches than fit into a page, and runs none of their callbacks.
func TestFlushOfManyBatchesRunsInPages(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p, w := dial(s, "producer", ""), dial(s, "worker", "")
	const complete = `"complete":{"jobtype":"T","args":[],"queue":"cb"}}` + "\r\n"
	var inner string
	open := func(definition string) string {
		p.Send("BATCH NEW {" + definition + complete)
		return string(bulk(t, p))
	}
	for range 1250 {
		outer := open("")
		inner = open(`"parent_bid":"` + outer + `",`)
		p.Send("BATCH COMMIT " + outer + "\r\n")
		p.Want("+OK\r\n")
	}
	w.Send("FETCH cb\r\n")
	p.Send("FLUSH\r\nBATCH STATUS " + inner + "\r\nINFO\r\n")
	p.Want("+OK\r\n-ERR no such batch " + inner + ": No such batch is known here\r\n")
	if got := fmt.Sprint(at(object(t, p), "faktory", "queues")); got != "map[cb:0]" {
		t.Errorf("left over: %s", got)
	}
	s.Advance(2 * time.Second)
	w.Want("$-1\r\n")
}

// A long command runs to its end after its client has disconnected.
func TestLongCommandOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p, conn := dial(s, "producer", ""), &brokenConn{}
	const jobs = 2500
	var b strings.Builder
	for i := range jobs {
		fmt.Fprintf(&b, `,{"jid":"page-%06d","jobtype":"T","args":[],"at":"2031-01-01T00:00:00Z"}`, i)
	}
	session := s.Front.Open(conn)
	session.Feed([]byte("HELLO {}\r\n"))
	line := []byte("PUSHB [" + b.String()[1:] + "]\r\n")
	session.Feed(line)
	clear(line)
	session.Closed() // after the first page
	s.Advance(time.Second)
	count := func() any {
		p.Send("INFO\r\n")
		return at(object(t, p), "faktory", "sets", "scheduled")
	}
	if got := count(); got != number(jobs) {
		t.Fatalf("%v jobs were pushed, want %d", got, jobs)
	}
	for _, command := range []string{
		`MUTATE {"cmd":"discard","target":"scheduled","filter":{"regexp":"*page-0010*"}}`,
		`MUTATE {"cmd":"clear","target":"scheduled"}`,
	} {
		session = s.Front.Open(conn)
		session.Feed([]byte("HELLO {}\r\n" + command + "\r\n"))
		session.Closed()
	}
	for range 5 {
		s.Advance(time.Second)
	}
	if got := count(); got != number(0) {
		t.Errorf("%v jobs are left", got)
	}
}

// The memory for long commands of disconnected clients is limited.
func TestDetachedCommandsAreBounded(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p, f := dial(s, "producer", ""), s.Front.(*Frontend)
	const jobs, size, pushes = bulkPage + 10, 10 << 10, 4
	body := strings.Repeat("x", size)
	for n := range pushes {
		var b strings.Builder
		for i := range jobs {
			fmt.Fprintf(&b, `,{"jid":"push-%d-%06d","jobtype":"T","args":[`, n, i)
			if i >= bulkPage {
				fmt.Fprintf(&b, "%q", body)
			}
			b.WriteString("]}")
		}
		f.detached.mu.Lock()
		f.detached.bytes += maxDetachedBytes / 4 // pretend that the rest of the command is larger
		f.detached.mu.Unlock()
		session := f.Open(&brokenConn{})
		session.Feed([]byte("HELLO {}\r\n"))
		session.Feed([]byte("PUSHB [" + b.String()[1:] + "]\r\n"))
		session.Closed()
	}
	if n := len(f.detached.tasks); n != 3 || f.detached.count != n {
		t.Errorf("%d commands go on, want 3", n)
	}
	for range 5 {
		s.Advance(time.Second)
	}
	p.Send("INFO\r\n")
	if got, want := at(object(t, p), "faktory", "queues",
		"default"), number(pushes*bulkPage+3*(jobs-bulkPage)); got != want {
		t.Errorf("%v jobs were pushed, want %v", got, want)
	}
	if f.detached.count != 0 || f.detached.bytes != maxDetachedBytes {
		t.Errorf("at the end %d commands hold %d bytes", f.detached.count, f.detached.bytes-maxDetachedBytes)
	}
	for n := range maxDetached + 10 {
		if got := f.detached.reserve(0); got != (n < maxDetached) {
			t.Fatalf("task %d: %v", n, got)
		}
	}
}

func TestManyJobsByNameAreMutatedInPages(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := dial(s, "producer", "")
	var jobs, jids []string
	for i := range 500 {
		jobs = append(jobs, fmt.Sprintf(`{"jid":"name-%06d","jobtype":"T","args":[],"at":"2031-01-01T00:00:00Z"}`, i))
		jids = append(jids, fmt.Sprintf(`"name-%06d"`, i))
	}
	p.Send("PUSHB [" + strings.Join(jobs, ",") +
		"]\r\nMUTATE {\"cmd\":\"kill\",\"target\":\"scheduled\",\"filter\":{\"jids\":[" +
		strings.Join(jids[:450], ",") + "]}}\r\nINFO\r\n")
	p.Want("$2\r\n{}\r\n+OK\r\n")
	info := object(t, p)
	if got := fmt.Sprintf("%v %v", at(info, "faktory", "sets", "scheduled"),
		at(info, "faktory", "sets", "dead")); got != "50 450" {
		t.Errorf("scheduled and dead: %s", got)
	}
}

// A client that does not read cannot fill the broker's memory with replies.
func TestOutputIsBoundedWhileRequestsWait(t *testing.T) {
	t.Parallel()
	s := setup(t)
	conn := &brokenConn{}
	session := s.Front.Open(conn)
	session.Feed([]byte("HELLO {}\r\n"))
	in := []byte(strings.Repeat("INFO\r\n", 5000))
	n := session.Feed(in)
	if n == len(in) || conn.out.Len() > 2*frontends.PauseAt {
		t.Errorf("%d of %d bytes read, %d bytes wait", n, len(in), conn.out.Len())
	}
	conn.out.Sent(conn.out.Len())
	if more := session.Feed(in[n:]); more == 0 {
		t.Error("it does not go on when there is room")
	}
	session.Closed()
}

// A PUSH that is refused for another reason does not remove the dead job with its jid.
func TestRefusedPushKeepsTheDeadJob(t *testing.T) {
	t.Parallel()
	s := setup(t)
	n, c := newOtherClient(s, core.Gearman), dial(s, "client", "w")
	const push = "PUSH {\"jid\":\"12345678\",\"queue\":\"q\",\"jobtype\":\"x\",\"args\":[],\"retry\":-1}\r\n"
	c.Send(push + "FETCH q\r\nFAIL {\"jid\":\"12345678\"}\r\n")
	c.Want("+OK\r\n")
	object(t, c)
	c.Want("+OK\r\n")
	n.do(&core.SetQueueMax{Queue: "q", Max: core.QueueMax{Normal: 1}})
	n.submit(t, &core.Job{Queue: "q", Origin: core.Gearman}, core.WatchNone)
	for _, request := range []string{push, "PUSHB [" + push[len("PUSH "):len(push)-2] + "]\r\n"} {
		c.Send(request)
		if reply := c.ReadUntil("\r\n"); reply[0] == '$' {
			reply = c.ReadUntil("\r\n")
			if want := "{\"12345678\":\"queue q is full\"}\r\n"; reply != want {
				t.Errorf("got %q, want %q", reply, want)
			}
		} else if reply != "-ERR queue q is full\r\n" {
			t.Errorf("got %q", reply)
		}
	}
	c.Send("INFO\r\n")
	if dead := at(object(t, c), "faktory", "sets", "dead"); dead != number(1) {
		t.Errorf("%v dead jobs are left", dead)
	}
}
