package crossprotocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends/frontendtest"
)

// keepDone keeps the finished jobs of the queue.
func (e *env) keepDone() {
	e.t.Helper()
	e.do(&core.KeepDone{Queue: queue, Retention: core.Retention{For: time.Hour, Count: 10}})
}

// runAgain reruns an ended job.
func (e *env) runAgain(seq uint64) uint64 {
	e.t.Helper()
	r := e.do(&core.Resubmit{Ref: core.Ref{Seq: seq}})
	if r.Kind != core.Submitted || r.Seq == seq || r.Existing {
		e.t.Fatalf("submitted again: %+v", r)
	}
	return r.Seq
}

// For every combination of protocols, a rerun job reaches the worker with the same content.
func TestJobsOfEveryProtocolRunAgain(t *testing.T) {
	t.Parallel()
	for _, o := range origins() {
		if strings.Contains(o.name, "run") || strings.Contains(o.name, "foreground") || o.brief ||
			strings.Contains(o.name, "sched") || strings.Contains(o.name, "epoch") {
			continue
		}
		for _, k := range workerKinds() {
			e := newEnv(t, frontendtest.InMemory)
			e.keepDone()
			o.submit(e, jobTimes{ttr, ttl})
			seq := e.newest(queue)
			first := e.do(&core.Inspect{Ref: core.Ref{Seq: seq}}).Info.Job
			e.jobSeq, e.jobCreatedAt, e.jobID = seq, first.CreatedAt, first.ID
			k.take(e).finish(true)
			again := e.runAgain(seq)
			second := e.do(&core.Inspect{Ref: core.Ref{Seq: again}}).Info.Job
			if string(first.Body) != string(second.Body) || string(first.Attributes) != string(second.Attributes) {
				t.Errorf("%s, %s: %+v, %+v", o.name, k.name, first, second)
			}
			e.jobSeq, e.jobCreatedAt, e.jobID = again, second.CreatedAt, ""
			w := k.take(e)
			if w == nil {
				t.Errorf("%s, %s: nobody gets the job", o.name, k.name)
				continue
			}
			answered := w.finish(true)
			if got := e.state(again); got != "done" {
				t.Errorf("%s, %s: the second run is %s, the worker was told %s", o.name, k.name, got, answered)
			}
		}
	}
}

func TestQlessWorkerRunsAJobOfQlessAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	e.keepDone()
	c := e.dialQless()
	c.call("put", "me", queue, id, "klass", `{"a":1}`, "0", "tags", `["t"]`, "priority", "7")
	seq := e.newest(queue)
	c.call("pop", queue, "w", "1")
	c.call("complete", id, "w", queue, `{"a":1}`)
	again := e.runAgain(seq)
	var popped []struct {
		Jid, Data, Klass string
		Priority         int
		Tags             []string
	}
	text := c.call("pop", queue, "w", "1")
	if err := json.Unmarshal([]byte(text), &popped); err != nil || len(popped) != 1 {
		t.Fatalf("pop: %s", text)
	}
	if j := popped[0]; j.Jid == id || j.Data != `{"a":1}` || j.Klass != "klass" || j.Priority != 7 ||
		fmt.Sprint(j.Tags) != "[t]" {
		t.Errorf("popped %+v", j)
	}
	c.call("complete", popped[0].Jid, "w", queue, `{}`)
	if got := e.state(again); got != "done" {
		t.Errorf("the second run is %s", got)
	}
}

func TestWorkersOfOtherServersRunTheirJobsAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	e.keepDone()
	b := e.beanstalkOf().Dial("client")
	b.Send("watch " + queue + "\r\nuse " + queue + "\r\nput 1020 0 60 5\r\nhello\r\nreserve\r\n")
	b.Rest()
	seq := e.do(&core.Find{Filter: core.Filter{Queues: []string{queue}}}).Jobs[0].Seq
	w := e.dial(e.workq) // a delete would remove the job
	w.Send("complete " + core.Alias(seq) + " 0\r\n\r\n")
	w.Want("+OK\r\n")
	again := e.runAgain(seq)
	b.Send("reserve\r\n")
	b.Want(fmt.Sprintf("RESERVED %d 5\r\nhello\r\n", again))
	b.Send(fmt.Sprintf("stats-job %d\r\n", again))
	if got := string(b.Rest()); !strings.Contains(got, "state: reserved\npri: 1020\n") {
		t.Errorf("stats of the second run: %s", got)
	}

	c := e.dialConveyor()
	c.do("LPUSH", "conv:queue:"+queue, conveyorJob(id, "hi", 0))
	seq = e.newest(queue)
	c.do("BRPOP", "conv:queue:"+queue, "0")
	e.do(&core.Complete{Ref: core.Ref{Seq: seq}, Authority: core.ByAnyone})
	e.runAgain(seq)
	if uuid, payload := conveyorPayload(t, c.do("BRPOP", "conv:queue:"+queue, "0")); uuid == id || payload != "hi" {
		t.Errorf("Conveyor's worker got %s, %s", uuid, payload)
	}

	s := e.openSQS()
	var none struct{}
	s.call("CreateQueue", `"QueueName":"`+queue+`"`, &none)
	var sent struct{ MessageID string }
	s.call("SendMessage", `"MessageBody":"message","MessageAttributes":{"a":{"DataType":"String","StringValue":"v"}}`,
		&sent)
	seq = e.newest(queue)
	e.do(&core.Complete{Ref: core.Ref{Seq: seq}, Authority: core.ByAnyone})
	e.runAgain(seq)
	var out struct {
		Messages []struct {
			Body, MessageID   string
			MessageAttributes map[string]struct{ StringValue string }
		}
	}
	s.call("ReceiveMessage", `"MessageAttributeNames":["All"]`, &out)
	if len(out.Messages) != 1 || out.Messages[0].Body != "message" ||
		out.Messages[0].MessageAttributes["a"].StringValue != "v" ||
		out.Messages[0].MessageID == sent.MessageID {
		t.Errorf("sent %+v, received %+v", sent, out)
	}
}
