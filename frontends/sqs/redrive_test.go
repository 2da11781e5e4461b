package sqs

import (
	"testing"
	"time"

	"broker/core"
)

// take leases the next message of a queue as a worker of another protocol that lets its lease end. It returns the body.
func (f *fixture) take(queue string) (body string) {
	f.t.Helper()
	worker := f.engine.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
	defer f.engine.Close(worker) // ends the lease
	for _, r := range f.engine.Do(worker, []core.Op{&core.Lease{Queues: []string{queue}, Holder: core.HeldByConn}},
		nil) {
		if r.Kind == core.Assigned {
			body = string(r.Job.Body)
		}
	}
	return body
}

func redriveTo(name, most string) string {
	return `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:` + name + `","maxReceiveCount":` + most + `}`
}

func TestDeadLetterOfOtherWorkersGoesBackToItsSource(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dead := f.create("dead")
	q := f.create("q", "RedrivePolicy", redriveTo("dead", "2"))
	f.create("other", "RedrivePolicy", redriveTo("dead", "2"))
	f.send(q, "m")
	core.DoOnce(f.engine, core.Gearman,
		&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman, Body: []byte("job")}})
	want(t, "taken", f.take("q"), "m")
	want(t, "received", bodies(f.receive(q, "VisibilityTimeout", 0)), "m job")
	want(t, "not earlier", f.attributesOf(dead)[countVisible], "0")
	want(t, "taken in place of the dead letter", f.take("q"), "job")
	f.restart()
	want(t, "dead letter", f.attributesOf(dead)[countVisible], "1")
	want(t, "taken once too often", f.take("q"), "")
	f.restart()
	want(t, "dead letters", f.attributesOf(dead)[countVisible], "2")
	f.do("StartMessageMoveTask", object{"SourceArn": f.arnOf("dead")})
	f.done.Wait()
	want(t, "back at their source", bodies(f.receive(q)), "m job")
}

func TestRetentionOfDeadLetters(t *testing.T) {
	t.Parallel()
	for _, fifo := range []bool{false, true} {
		f := setup(t)
		suffix, attributes := "", []string(nil)
		if fifo {
			suffix, attributes = ".fifo", []string{"FifoQueue", "true", "ContentBasedDeduplication", "true"}
		}
		dead := f.create("dead"+suffix, append([]string{"MessageRetentionPeriod", "600"}, attributes...)...)
		q := f.create("q"+suffix, append([]string{
			"RedrivePolicy", redriveTo("dead"+suffix, "1"), "VisibilityTimeout", "50",
		}, attributes...)...)
		f.do("SetQueueAttributes", object{"QueueUrl": dead, "Attributes": object{"MessageRetentionPeriod": "120"}})
		in := object{"QueueUrl": q, "MessageBody": "m"}
		if fifo {
			in["MessageGroupId"] = "g"
		}
		f.do("SendMessage", in)
		want(t, "received", bodies(f.receive(q)), "m")
		f.advance(50 * time.Second)
		want(t, "received once too often", bodies(f.receive(q)), "")
		left := 70 * time.Second // since it was sent
		if fifo {
			left = 120 * time.Second // since it has moved
		}
		f.advance(left - time.Second)
		want(t, "kept "+suffix, f.attributesOf(dead)[countVisible], "1")
		f.advance(2 * time.Second)
		want(t, "gone "+suffix, f.attributesOf(dead)[countVisible], "0")
	}
}

func TestRemovedRedrivePolicyMovesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("dead")
	q := f.create("q", "RedrivePolicy", redriveTo("dead", "1"), "VisibilityTimeout", "1")
	f.send(q, "m")
	want(t, "received", bodies(f.receive(q)), "m")
	f.advance(time.Second)
	f.do("SetQueueAttributes", object{"QueueUrl": q, "Attributes": object{"RedrivePolicy": ""}})
	want(t, "received again", bodies(f.receive(q)), "m")
	f.do("SetQueueAttributes", object{"QueueUrl": q, "Attributes": object{"RedrivePolicy": redriveTo("dead", "2")}})
	f.do("DeleteQueue", object{"QueueUrl": q})
	f.create("q", "VisibilityTimeout", "1")
	f.send(q, "n")
	for range 3 {
		want(t, "received from the new queue", bodies(f.receive(q)), "n")
		f.advance(time.Second)
	}
}
