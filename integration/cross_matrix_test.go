package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

// outcome is what the client learns about its job.
type outcome struct {
	ok      bool
	result  string
	message string // of a failure, if the protocol has one
}

// submitter submits a job and returns a function that waits for the outcome.
type submitter struct {
	name   string
	isJSON bool // the body is a JSON array of arguments
	blocks bool // it can only submit and wait
	submit func(t *testing.T, b *harness.Broker, queue, body string) (await func(t *testing.T) outcome)
}

func submitters() []submitter {
	return []submitter{
		{"gearman foreground", false, true, submitGearmanForeground},
		{"gearman background", false, false, submitGearmanBackground},
		{"faktory push", true, false, submitFaktory(false)},
		{"faktory scheduled", true, false, submitFaktory(true)},
		{"workq add", false, false, submitWorkqAdd(false)},
		{"workq schedule", false, false, submitWorkqAdd(true)},
		{"workq run", false, true, submitWorkqRun},
	}
}

func submitGearmanForeground(t *testing.T, b *harness.Broker, queue, body string) func(t *testing.T) outcome {
	return func(t *testing.T) outcome {
		t.Helper()
		events := phpClient(t, b, body, "tasks", queue, "1")
		for _, e := range events {
			switch e.Event {
			case "complete":
				return outcome{ok: true, result: string(e.Data)}
			case "exception":
				return outcome{message: string(e.Data)}
			case "fail":
				return outcome{}
			}
		}
		t.Fatalf("no outcome: %+v", events)
		return outcome{}
	}
}

func submitGearmanBackground(t *testing.T, b *harness.Broker, queue, body string) func(t *testing.T) outcome {
	t.Helper()
	handle := only(t, phpClient(t, b, body+"0", "background", "normal", queue), "created").ID
	return func(t *testing.T) outcome {
		t.Helper()
		harness.Eventually(t, func() string {
			if s := only(t, phpClient(t, b, "", "status", handle), "jobstatus"); s.Known {
				return fmt.Sprintf("%s is still known: %+v", handle, s)
			}
			return ""
		})
		return outcome{ok: true} // the protocol reports no more
	}
}

func submitFaktory(later bool) func(*testing.T, *harness.Broker, string, string) func(*testing.T) outcome {
	return func(t *testing.T, b *harness.Broker, queue, body string) func(t *testing.T) outcome {
		t.Helper()
		c, wq := dialFaktory(t, b), harness.DialWorkq(t, b)
		id := newID()
		at := ""
		if later {
			at = fmt.Sprintf(`,"at":%q`, shortly().UTC().Format(time.RFC3339))
		}
		reply, err := c.Generic(fmt.Sprintf(`PUSH {"jid":%q,"jobtype":%q,"queue":%q,"args":%s%s}`, id, queue, queue,
			body, at))
		check(t, err)
		equal(t, "push", reply, "OK")
		return func(t *testing.T) outcome {
			t.Helper()
			var o outcome
			harness.Eventually(t, func() string {
				// A completed job is gone; a failed one waits for its retry, whatever the worker's protocol. On a busy
				// machine it may have failed once more.
				job, err := wq.InspectJob(id)
				o.ok = errors.Is(err, workqclient.ErrNotFound)
				if !o.ok && (job.Value("state") != "3" || job.Value("fails") == "0") {
					return "neither done nor in the retries: " + job.Value("state")
				}
				return ""
			})
			return o
		}
	}
}

func submitWorkqAdd(later bool) func(*testing.T, *harness.Broker, string, string) func(*testing.T) outcome {
	return func(t *testing.T, b *harness.Broker, queue, body string) func(t *testing.T) outcome {
		t.Helper()
		c := harness.DialWorkq(t, b)
		job := wqJob(queue, body+"0")
		if job.At = shortly(); later {
			check(t, c.Schedule(job))
		} else {
			check(t, c.Add(job))
		}
		return func(t *testing.T) outcome {
			t.Helper()
			r, err := c.Result(job.ID, harness.Patience)
			check(t, err)
			return workqOutcome(r)
		}
	}
}

func submitWorkqRun(t *testing.T, b *harness.Broker, queue, body string) func(t *testing.T) outcome {
	t.Helper()
	c := harness.DialWorkq(t, b)
	return func(t *testing.T) outcome {
		t.Helper()
		r, err := c.Run(wqJob(queue, body+"0"))
		check(t, err)
		return workqOutcome(r)
	}
}

func workqOutcome(r workqclient.Result) outcome {
	if r.OK {
		return outcome{ok: true, result: string(r.Body)}
	}
	return outcome{message: string(r.Body)}
}

// runner starts a worker of one protocol for a queue, and returns a function that waits for the job and returns the
// body that the worker received.
type runner struct {
	name   string
	isJSON bool
	need   func(t *testing.T)
	// succeed returns the reversed body if the protocol has results; fail fails the job.
	succeed, fail func(t *testing.T, b *harness.Broker, queue string) (seen func(t *testing.T) string)
	// result is the result that a waiting client receives for a body.
	result func(body string) string
	// The messages that waiting Gearman and Workq clients receive when the job fails.
	gearmanMessage, workqMessage string
}

func runners() []runner {
	nothing := func(string) string { return "" }
	return []runner{
		{
			name: "php worker", need: needPHP, result: reversed,
			succeed: childRunner(phpWorker, "reverse"), fail: childRunner(phpWorker, "fail"),
		},
		{
			name: "perl worker", need: needPerl, result: reversed,
			succeed: childRunner(perlWorker, "reverse"), fail: childRunner(perlWorker, "fail"),
		},
		{
			name: "node worker", isJSON: true, need: func(t *testing.T) { harness.NeedNode(t) }, result: nothing,
			succeed: childRunner(nodeWorker, "echo"), fail: childRunner(nodeWorker, "fail"),
			gearmanMessage: "Broken: broken: body-0", workqMessage: "broken: body-0",
		},
		{
			name: "go worker", isJSON: true, need: func(*testing.T) {}, result: nothing,
			succeed: childRunner(goWorker, "echo"), fail: childRunner(goWorker, "fail"),
			gearmanMessage: `unknown: broken: ["body-0"]`, workqMessage: `broken: ["body-0"]`,
		},
		{
			name: "workq worker", need: func(*testing.T) {}, result: reversed,
			succeed: workqRunner(true), fail: workqRunner(false),
			workqMessage: "no", // a Workq failure is not an exception
		},
	}
}

func reversed(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

type spawner func(t *testing.T, b *harness.Broker, functions ...string) *harness.Child

func childRunner(spawn spawner, behaviour string) func(*testing.T, *harness.Broker, string) func(*testing.T) string {
	return func(t *testing.T, b *harness.Broker, queue string) func(*testing.T) string {
		t.Helper()
		w := spawn(t, b, queue+"="+behaviour)
		return func(t *testing.T) string {
			t.Helper()
			jobs := w.Await("job", 1)
			if behaviour != "fail" { // which may be tried again by now
				equal(t, "hand-outs", len(jobs), 1)
			}
			equal(t, "name at the worker", jobs[0].Func, queue)
			return string(jobs[0].Data)
		}
	}
}

func workqRunner(succeed bool) func(*testing.T, *harness.Broker, string) func(*testing.T) string {
	return func(t *testing.T, b *harness.Broker, queue string) func(*testing.T) string {
		t.Helper()
		w := harness.DialWorkq(t, b)
		type answer struct {
			body string
			err  error
		}
		answers := make(chan answer, 1)
		go func() { // ends with the job or the connection
			l, err := w.Lease(harness.Patience, queue)
			switch {
			case err != nil:
			case succeed:
				err = w.Complete(l.ID, []byte(reversed(string(l.Body))))
			default:
				err = w.Fail(l.ID, []byte("no"))
			}
			answers <- answer{string(l.Body), err}
		}()
		return func(t *testing.T) string {
			t.Helper()
			a := <-answers
			check(t, a.err)
			return a.body
		}
	}
}

func TestEveryProtocolRunsTheJobsOfEveryOther(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	needPHP(t)
	for _, r := range runners() {
		for _, succeed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, success %v", r.name, succeed), func(t *testing.T) {
				t.Parallel()
				r.need(t)
				b := startShared(t)
				for i, s := range submitters() {
					t.Run(s.name, func(t *testing.T) { crossOne(t, b, s, r, fmt.Sprintf("queue-%d", i), succeed) })
				}
			})
		}
	}
}

// crossOne sends one job from one protocol to another one, and its result back. The body is "body-0", as a string or as
// an array of one argument.
func crossOne(t *testing.T, b *harness.Broker, s submitter, r runner, queue string, succeed bool) {
	t.Helper()
	body := "body-"
	if s.isJSON {
		body = `["body-0"]`
	}
	run := r.succeed
	if !succeed {
		run = r.fail
	}
	await := s.submit(t, b, queue, body)
	seen := run(t, b, queue)
	got := await(t)

	wantBody := "body-0"
	if s.isJSON || r.isJSON {
		wantBody = `["body-0"]`
	}
	equal(t, "body at the worker", seen(t), wantBody)
	if s.name == "gearman background" {
		return
	}
	want := outcome{ok: succeed}
	switch {
	case s.isJSON: // a Faktory client learns no more
	case succeed:
		want.result = r.result(wantBody)
	case s.name == "gearman foreground":
		want.message = r.gearmanMessage
	default:
		want.message = r.workqMessage
	}
	equal(t, "outcome at the submitter", got, want)
}

// brokerNote is what the broker adds to custom in jobs that were not submitted by a Faktory client.
type brokerNote struct {
	Broker struct{ From, Encoding string }
}

func TestRawBodiesBecomeArguments(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	gearman, wq, fkt := harness.DialGearman(t, b), harness.DialWorkq(t, b), dialFaktory(t, b)
	for i, e := range []struct{ body, args, encoding string }{
		{`[1,{"a":[2.50]},9007199254740993]`, `[1,{"a":[2.50]},9007199254740993]`, "json"},
		{`[ ]`, `[ ]`, "json"},
		{`{"a":1}`, `["{\"a\":1}"]`, "text"},
		{"plain ünïcode", `["plain ünïcode"]`, "text"},
		{"[not json", `["[not json"]`, "text"},
		{"", `[""]`, "text"},
		{"\xff\x00\xfe", `["/wD+"]`, "base64"},
	} {
		queue := fmt.Sprintf("bodies-%d", i)
		for _, from := range []string{"gearman", "workq"} {
			if from == "gearman" {
				_, err := gearman.Submit(gearmanclient.SubmitJobBg, queue, "", e.body)
				check(t, err)
			} else {
				check(t, wq.Add(wqJob(queue, e.body)))
			}
			raw, err := fkt.Generic("FETCH " + queue)
			check(t, err)
			var job struct {
				Jid, Jobtype, Queue string
				Args                json.RawMessage
				Custom              brokerNote
			}
			if err := json.Unmarshal([]byte(raw), &job); err != nil {
				t.Fatalf("%q from %s: fetched %q: %v", e.body, from, raw, err)
			}
			if !sameJSON(t, job.Args, e.args) {
				t.Errorf("%q from %s: args %s, not %s", e.body, from, job.Args, e.args)
			}
			equal(t, "note", job.Custom.Broker.From+" "+job.Custom.Broker.Encoding, from+" "+e.encoding)
			equal(t, "type and queue", job.Jobtype+" "+job.Queue, queue+" "+queue)
			check(t, fkt.Ack(job.Jid))
		}
	}
}

// sameJSON compares JSON values; numbers are compared as they are written.
func sameJSON(t testing.TB, got json.RawMessage, want string) bool {
	t.Helper()
	values := make([]any, 2)
	for i, text := range []string{string(got), want} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		check(t, d.Decode(&values[i]))
	}
	return fmt.Sprintf("%#v", values[0]) == fmt.Sprintf("%#v", values[1])
}

func TestArgumentsReachRawWorkersByteForByte(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	gearman, wq, fkt := harness.DialGearman(t, b), harness.DialWorkq(t, b), dialFaktory(t, b)
	const args = `[1, "two",{"z":9007199254740993 ,"a":1.50},"\u00fc",[]]`
	for range 2 {
		reply, err := fkt.Generic(fmt.Sprintf(`PUSH {"jid":%q,"queue":"raw","jobtype":"T","args":%s}`, newID(), args))
		check(t, err)
		equal(t, "push", reply, "OK")
	}
	l, err := wq.Lease(harness.Patience, "raw")
	check(t, err)
	equal(t, "at a Workq worker", string(l.Body), args)
	check(t, wq.Complete(l.ID, nil))
	check(t, gearman.Send(gearmanclient.CanDo, "raw"))
	handle, _, _, body, err := gearman.Grab(harness.Patience)
	check(t, err)
	equal(t, "at a Gearman worker", body, args)
	check(t, gearman.Send(gearmanclient.WorkComplete, handle, ""))
}
