package faktory

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends/frontendtest"
)

// allocated returns the bytes that do allocates, including garbage. Tests that use it do not run in parallel.
func allocated(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// many returns a JSON array of n values.
func many(value string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(value+",", n), ",") + "]"
}

// Memory is bounded by about one copy of the line, whether the line is refused or not.
func TestLongLinesTakeBoundedMemory(t *testing.T) {
	const n = 1 << 20
	for name, text := range map[string]string{
		"not JSON":                 unit(`"args":`+many("[]", n)) + "x",
		"not a job":                unit(`"args":` + many("[]", n) + `,"jid":1`),
		"a long backtrace":         unit(`"failure":{"backtrace":` + many(`""`, n) + `}`),
		"a failure without a type": unit(`"failure":{"backtrace":` + many(`""`, n) + `,"errtype":1}`),
		"unknown members":          unit(strings.TrimSuffix(strings.Repeat(`"":0,`, n), ",")),
		"many predecessors":        unit(`"custom":{"after":` + many(`""`, n) + `}`),
		"a long jobtype":           unit(`"jobtype":"` + strings.Repeat("x", n) + `"`),
		"a long queue":             unit(`"queue":"` + strings.Repeat(" ", n) + `"`),
		"a long timestamp":         unit(`"at":"` + strings.Repeat("\u0000", n) + `"`),
		"a long expiry":            unit(`"custom":{"expires_at":"` + strings.Repeat("\u0000", n) + `"}`),
	} {
		line := []byte(text)
		var u workUnit
		cost := allocated(func() {
			if parseWorkUnit(line, &u) == nil {
				_, _ = (&Frontend{}).newPushedJob(&u, &names{}, now) // the result does not matter
			}
		})
		if limit := 2*len(line) + 1<<20; cost > limit {
			t.Errorf("%s: a line of %d bytes takes %d bytes, more than %d", name, len(line), cost, limit)
		}
	}
	unknown := strings.TrimSuffix(strings.Repeat(`"":0,`, maxUnknown+1), ",")
	u := new(workUnit)
	if err := parseWorkUnit([]byte(unit(unknown)), u); !errors.Is(err, errTooMany) {
		t.Errorf("too many members: %v", err)
	}
	if _, err := newWorkUnits([]byte("[null]"), u); err != nil {
		t.Errorf("after too many members: %v", err)
	}
	if _, err := newWorkUnits([]byte("[null,"+unit(unknown)+"]"), u); !errors.Is(err, errTooMany) {
		t.Errorf("too many members in bulk: %v", err)
	}
	line := []byte(many("{}", maxBulk+1))
	if cost := allocated(func() {
		if _, err := newWorkUnits(line, &workUnit{}); err == nil ||
			err.Error() != "more than 100000 jobs in one PUSHB" {
			t.Errorf("too many jobs: %v", err)
		}
	}); cost > 1<<20 {
		t.Errorf("refusing too many jobs takes %d bytes", cost)
	}
}

func TestConnectionsKeepShortNamesOnly(t *testing.T) {
	t.Parallel()
	n := names{}
	long := strings.Repeat("x", 1<<20)
	if intern(&n.queue, []byte(long)) != long || n.queue != "" {
		t.Errorf("a connection keeps a name of %d bytes", len(n.queue))
	}
}

// spyBroker counts the bytes that a session reads.
type spyBroker struct {
	core.Broker
	t    testing.TB
	read int // bytes of jobs since it was last set to zero
}

func (b *spyBroker) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	for _, op := range ops {
		if list, ok := op.(*core.ListJobs); ok && !list.Brief {
			b.t.Error("a list reads bodies")
		}
		if _, ok := op.(*core.ListQueues); ok {
			b.t.Error("a list reads whole rows of queues")
		}
	}
	from := len(into)
	into = b.Broker.Do(id, ops, into)
	for _, r := range into[from:] {
		if r.Info != nil && r.Info.Job != nil {
			b.read += len(r.Info.Job.Body)
		}
	}
	return into
}

// scheduleLarge pushes jobs for the year 2099, each of size bytes.
func scheduleLarge(s *frontendtest.Stage, jobs, size int) *frontendtest.Client {
	c := dial(s, "producer", "")
	for i := range jobs {
		c.Send(fmt.Sprintf("PUSH {\"jid\":\"scheduled-%d\",\"jobtype\":\"x\",\"args\":[%q],\"at\":\"2099-01-01T00:00:00Z\"}\r\n",
			i, strings.Repeat("x", size)))
		c.Want("+OK\r\n")
	}
	return c
}

func TestMutateReadsAFewJobsAtATime(t *testing.T) {
	t.Parallel()
	const jobs, size = 30, 100 << 10
	s := setup(t)
	c := scheduleLarge(s, jobs, size)
	spy := &spyBroker{Broker: s.Broker, t: t}
	on := newSession(New(access.Unrestricted(spy, core.Faktory), Options{}), &detachedConn{})
	on.openClient(nil)
	on.Begin()
	defer on.End()
	byType, err := (&jobFilter{Jobtype: "*y"}).pattern()
	must(t, err)
	for task := (&mutateScan{pattern: byType, from: core.Scheduled, change: changes["requeue"]}); !task.step(on); {
	}
	if spy.read > 0 {
		t.Errorf("a filter by type reads %d bytes", spy.read)
	}
	pattern, err := (&jobFilter{Regexp: "*x*"}).pattern()
	must(t, err)
	task := &mutateScan{pattern: pattern, from: core.Scheduled, change: changes["kill"]}
	steps := 1
	for ; !task.step(on); steps++ {
		if spy.read > scanBytes+size {
			t.Fatalf("one step reads %d bytes", spy.read)
		}
		spy.read = 0
	}
	if steps < 10 {
		t.Errorf("%d jobs of %d bytes take %d steps", jobs, size, steps)
	}
	c.Send("INFO\r\n")
	if dead := at(object(t, c), "faktory", "sets", "dead"); dead != number(jobs) {
		t.Errorf("%v jobs are dead, want %d", dead, jobs)
	}
}

// A half-closed client still gets the answer to a long command, which runs in steps.
func TestHalfClosedClientGetsAnswerOfLongCommand(t *testing.T) {
	t.Parallel()
	s := setup(t)
	scheduleLarge(s, 20, 100<<10)
	conn := &detachedConn{}
	on := New(access.Unrestricted(s.Broker, core.Faktory), Options{}).Open(conn).(*session)
	feed := func(line string) { on.Feed([]byte(line)) }
	feed("HELLO {}\r\n")
	feed("MUTATE {\"cmd\":\"kill\",\"target\":\"scheduled\",\"filter\":{\"regexp\":\"*x*\"}}\r\n")
	steps := 0
	for ; on.WaitsHalfClosed(); steps++ {
		on.Deliver()
	}
	if out := string(conn.out.Buf()); steps < 3 || !strings.HasSuffix(out, "+OK\r\n+OK\r\n") {
		t.Errorf("after %d steps: %q", steps, out)
	}
	feed("FETCH default\r\n")
	if on.WaitsHalfClosed() || !strings.HasSuffix(string(conn.out.Buf()), "$-1\r\n") {
		t.Errorf("FETCH of a half-closed client: %q", conn.out.Buf())
	}
	on.EOF(nil)
	on.Closed()
}

// With many queues, INFO runs in steps so that other clients are served in between. It reads only one number per queue.
func TestInfoReadsManyQueuesInSteps(t *testing.T) {
	t.Parallel()
	const queues = 2*queuePage + 1
	s := setup(t)
	spy := &spyBroker{Broker: s.Broker, t: t}
	conn := &detachedConn{}
	on := New(access.Unrestricted(spy, core.Faktory), Options{}).Open(conn).(*session)
	on.Feed([]byte("HELLO {}\r\n"))
	for i := range queues {
		on.Feed(fmt.Appendf(nil, "PUSH {\"jid\":\"job-%04d\",\"jobtype\":\"x\",\"args\":[],\"queue\":\"q%04d\"}\r\n", i,
			i))
	}
	on.Feed([]byte("INFO\r\n"))
	steps := 1
	for ; on.Blocked(); steps++ {
		on.Deliver()
	}
	if steps != 3 {
		t.Errorf("%d queues take %d steps", queues, steps)
	}
	_, answer, _ := strings.Cut(string(conn.out.Buf()), "$")
	_, answer, _ = strings.Cut(answer, "\r\n")
	for _, want := range []string{
		`"queues":{"q0000":1,"q0001":1,`, `,"q2000":1},"sets":{`, `"total_enqueued":2001,"total_queues":2001}`,
	} {
		if !strings.Contains(answer, want) {
			t.Errorf("the answer lacks %s", want)
		}
	}
	on.Closed()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
