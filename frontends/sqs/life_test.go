package sqs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"broker/core"
)

func TestLifeOfAMessage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q")
	sent := f.send(q, "one", "MessageAttributes", object{
		"k": object{"DataType": "String", "StringValue": "v"}, "b": object{"DataType": "Binary", "BinaryValue": "AAE="},
	})
	// as boto3 computes it
	want(t, "digest of the attributes", sent["MD5OfMessageAttributes"], "eb275886858fc7bc63216742c9bebbb1")
	f.send(q, "two")
	got := f.receive(q)
	want(t, "received", bodies(got), "one two")
	want(t, "id", got[0]["MessageId"], sent["MessageId"])
	want(t, "digest", got[0]["MD5OfBody"], digestOf("one"))
	want(t, "nothing is visible", len(f.receive(q)), 0)
	want(t, "in flight", f.attributesOf(q)[countInFlight], "2")

	first := got[0]["ReceiptHandle"]
	f.do("ChangeMessageVisibility", object{"QueueUrl": q, "ReceiptHandle": first, "VisibilityTimeout": 0})
	again := f.receive(q)
	want(t, "given back", bodies(again), "one")
	want(t, "count", again[0]["Attributes"].(object)[sysCount], "2")
	f.advance(31 * time.Second)
	want(t, "both are back in their old order", bodies(f.receive(q, "VisibilityTimeout", 0)), "one two")
	f.do("DeleteMessage", object{"QueueUrl": q, "ReceiptHandle": first}) // also with an old handle, and twice
	f.do("DeleteMessage", object{"QueueUrl": q, "ReceiptHandle": first})
	want(t, "left", bodies(f.receive(q)), "two")
	status, _, out := f.post(context.Background(), "ChangeMessageVisibility",
		object{"QueueUrl": q, "ReceiptHandle": first, "VisibilityTimeout": 1})
	want(t, "visibility of a deleted message", status, 400)
	want(t, "its type", out["__type"], "com.amazonaws.sqs#InvalidParameterValueException")

	f.restart()
	want(t, "after a restart it is invisible still", len(f.receive(q)), 0)
	want(t, "attributes after a restart", f.attributesOf(q)[countInFlight], "1")
	f.do("PurgeQueue", object{"QueueUrl": q})
	want(t, "purged", f.attributesOf(q)[countInFlight], "0")
}

func TestExpiredHandleHidesAVisibleMessage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q")
	f.send(q, "m")
	h := f.receive(q, "VisibilityTimeout", 1)[0]["ReceiptHandle"]
	f.advance(2 * time.Second)
	f.do("ChangeMessageVisibility", object{"QueueUrl": q, "ReceiptHandle": h, "VisibilityTimeout": 5})
	want(t, "hidden", len(f.receive(q)), 0)
	f.advance(5 * time.Second)
	want(t, "back", bodies(f.receive(q)), "m")
}

func TestDelays(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q", "DelaySeconds", "10")
	f.send(q, "queue's")
	f.send(q, "none", "DelaySeconds", 0)
	want(t, "at once", bodies(f.receive(q)), "none")
	want(t, "delayed", f.attributesOf(q)[countDelayed], "1")
	f.advance(10 * time.Second)
	want(t, "later", bodies(f.receive(q)), "queue's")
}

func TestRetention(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q")
	f.send(q, "m")
	f.do("SetQueueAttributes", object{"QueueUrl": q, "Attributes": object{"MessageRetentionPeriod": "60"}})
	f.advance(59 * time.Second)
	want(t, "kept", f.attributesOf(q)[countVisible], "1")
	f.advance(2 * time.Second)
	want(t, "gone", f.attributesOf(q)[countVisible], "0")
}

// A message that consumers cannot handle is delivered again and again. No limit of the broker ends that.
func TestDeliveriesOfAMessageAreUnlimited(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q", "VisibilityTimeout", "1")
	f.send(q, "m")
	for range 30 {
		if bodies(f.receive(q)) != "m" {
			t.Fatal("the message is gone")
		}
		f.advance(2 * time.Second)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dead := f.create("dead")
	q := f.create("q", "VisibilityTimeout", "1", "RedrivePolicy",
		`{"deadLetterTargetArn":"arn:aws:sqs:x:1:dead","maxReceiveCount":"2"}`)
	sent := f.send(q, "m", "MessageAttributes", object{"k": object{"DataType": "Number", "StringValue": "1"}})
	for range 2 {
		want(t, "received", bodies(f.receive(q)), "m")
		f.advance(2 * time.Second)
	}
	want(t, "not before the third receive", f.attributesOf(dead)[countVisible], "0")
	want(t, "received too often", len(f.receive(q)), 0)
	got := f.receive(dead)
	want(t, "dead letter", bodies(got), "m")
	want(t, "its id", got[0]["MessageId"], sent["MessageId"])
	want(t, "its count goes on", got[0]["Attributes"].(object)[sysCount], "3")
	want(t, "its source", got[0]["Attributes"].(object)[sysDeadSource], "arn:aws:sqs:us-east-1:000000000000:q")
	want(t, "its attributes", got[0]["MD5OfMessageAttributes"], sent["MD5OfMessageAttributes"])
	f.do("ChangeMessageVisibility",
		object{"QueueUrl": dead, "ReceiptHandle": got[0]["ReceiptHandle"], "VisibilityTimeout": 0})

	sources := f.do("ListDeadLetterSourceQueues", object{"QueueUrl": dead})["queueUrls"].([]any)
	want(t, "sources", len(sources), 1)
	f.do("StartMessageMoveTask", object{"SourceArn": f.arnOf("dead")})
	f.done.Wait()
	task := f.task("dead")
	want(t, "task", task["Status"], taskDone)
	want(t, "moved", task["ApproximateNumberOfMessagesMoved"], float64(1))
	back := f.receive(q)
	want(t, "back at its source", bodies(back), "m")
	want(t, "with a new count", back[0]["Attributes"].(object)[sysCount], "1")
}

func TestMoveTaskContinuesAfterARestartAndCanBeCancelled(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dead, other, start := f.startMove(1)
	status, _, _ := f.post(context.Background(), "StartMessageMoveTask", start)
	want(t, "a second task", status, 400)
	f.restart()
	task := f.task("dead")
	want(t, "after a restart", task["Status"], taskRunning)
	f.do("CancelMessageMoveTask", object{"TaskHandle": task["TaskHandle"]})
	f.done.Wait()
	task = f.task("dead")
	want(t, "after the cancellation", task["Status"], taskCancelled)
	if left := len(f.receive(dead)) + len(f.receive(other)); left != 3 {
		t.Errorf("%d messages are left of 3", left)
	}
}

func TestGroupsOfFIFOQueues(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q.fifo", "FifoQueue", "true", "ContentBasedDeduplication", "true", "VisibilityTimeout", "5")
	for _, m := range []string{"a1", "a2", "b1"} {
		f.send(q, m, "MessageGroupId", m[:1])
	}
	first := f.receive(q, "MaxNumberOfMessages", 1)
	want(t, "head", bodies(first), "a1")
	want(t, "the rest of its group waits", bodies(f.receive(q)), "b1")
	want(t, "it counts as visible", f.attributesOf(q)[countVisible], "1")
	f.advance(6 * time.Second)
	status, _, out := f.post(context.Background(), "DeleteMessage",
		object{"QueueUrl": q, "ReceiptHandle": first[0]["ReceiptHandle"]})
	want(t, "an expired handle", status, 400)
	want(t, "its type", out["__type"], "com.amazonaws.sqs#InvalidParameterValueException")
	status, _, _ = f.post(context.Background(), "ChangeMessageVisibility",
		object{"QueueUrl": q, "ReceiptHandle": first[0]["ReceiptHandle"], "VisibilityTimeout": 3})
	want(t, "visibility by an expired handle", status, 400)
	f.restart()
	again := f.receive(q, "MaxNumberOfMessages", 1)
	want(t, "head again", bodies(again), "a1")
	f.do("DeleteMessage", object{"QueueUrl": q, "ReceiptHandle": again[0]["ReceiptHandle"]})
	want(t, "next", bodies(f.receive(q, "MaxNumberOfMessages", 1)), "a2")
	number := again[0]["Attributes"].(object)[sysSequence].(string)
	want(t, "digits of the sequence number", len(number), 20)
}

func TestDuplicateSendReturnsTheFirstMessageID(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q.fifo", "FifoQueue", "true")
	first := f.send(q, "m", "MessageGroupId", "g", "MessageDeduplicationId", "d")
	second := f.send(q, "other", "MessageGroupId", "h", "MessageDeduplicationId", "d")
	want(t, "id", second["MessageId"], first["MessageId"])
	want(t, "number", second["SequenceNumber"], first["SequenceNumber"])
	want(t, "stored", f.attributesOf(q)[countVisible], "1")
	got := f.receive(q)
	want(t, "id of the message", got[0]["MessageId"], first["MessageId"])
	f.do("DeleteMessage", object{"QueueUrl": q, "ReceiptHandle": got[0]["ReceiptHandle"]})
	f.restart()
	f.advance(4 * time.Minute)
	third := f.send(q, "m", "MessageGroupId", "g", "MessageDeduplicationId", "d")
	want(t, "id after the deletion", third["MessageId"], first["MessageId"])
	want(t, "number after the deletion", third["SequenceNumber"], first["SequenceNumber"])
	want(t, "not stored after the deletion", f.attributesOf(q)[countVisible], "0")
	f.advance(time.Minute)
	fourth := f.send(q, "m", "MessageGroupId", "g", "MessageDeduplicationId", "d")
	if fourth["MessageId"] == first["MessageId"] || f.attributesOf(q)[countVisible] != "1" {
		t.Errorf("after five minutes it is a duplicate still")
	}
	f.advance(time.Second)
	f.do("PurgeQueue", object{"QueueUrl": q})
	fifth := f.send(q, "m", "MessageGroupId", "g", "MessageDeduplicationId", "d")
	if fifth["MessageId"] == fourth["MessageId"] || f.attributesOf(q)[countVisible] != "1" {
		t.Errorf("after a purge it is a duplicate still")
	}
}

func TestRepeatedReceiveGetsTheSameMessages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q.fifo", "FifoQueue", "true", "ContentBasedDeduplication", "true")
	f.send(q, "m", "MessageGroupId", "g")
	first := f.receive(q, "ReceiveRequestAttemptId", "try")
	second := f.receive(q, "ReceiveRequestAttemptId", "try")
	if bodies(second) != "m" || first[0]["ReceiptHandle"] != second[0]["ReceiptHandle"] {
		t.Errorf("%v, then %v", first, second)
	}
	want(t, "another attempt", len(f.receive(q, "ReceiveRequestAttemptId", "other")), 0)
}

// A poll whose client has disconnected takes no message.
func TestClosedPollTakesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		f.post(ctx, "ReceiveMessage", object{"QueueUrl": q, "WaitTimeSeconds": 20})
		close(ended)
	}()
	for f.waiting(q) == 0 {
		f.engine.Tick()
	}
	cancel()
	<-ended
	f.send(q, "m")
	got := f.receive(q)
	want(t, "left for others", bodies(got), "m")
	want(t, "count", got[0]["Attributes"].(object)[sysCount], "1")
}

// A client that closes its connection as soon as it has read the reply has received the messages.
func TestClientThatDisconnectsAfterTheReplyKeepsItsMessages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q")
	f.send(q, "m")
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"QueueUrl":"q"}`)).WithContext(ctx)
	r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
	w := closingWriter{httptest.NewRecorder(), cancel}
	f.ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), `"Body":"m"`) {
		t.Fatal(w.Body)
	}
	want(t, "in flight", f.attributesOf(q)[countInFlight], "1")
}

// closingWriter closes its connection after the reply.
type closingWriter struct {
	*httptest.ResponseRecorder
	disconnect func()
}

func (w closingWriter) Write(b []byte) (int, error) {
	defer w.disconnect()
	return w.ResponseRecorder.Write(b)
}

// waiting is the number of receives that wait for a message.
func (f *fixture) waiting(queue string) int {
	info, err := f.inspect(queueName(queue))
	if err != nil || info == nil {
		return 0
	}
	return info.Waiting
}

func TestLongPollIsWokenByASend(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q")
	got := make(chan object, 1)
	go func() {
		_, _, out := f.post(context.Background(), "ReceiveMessage", object{"QueueUrl": q, "WaitTimeSeconds": 20})
		got <- out
	}()
	for f.waiting(q) == 0 {
		f.engine.Tick()
	}
	f.send(q, "m")
	out := <-got
	if len(out["Messages"].([]any)) != 1 {
		t.Errorf("%v", out)
	}
}

func TestTooManyMessagesInFlight(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *Options) { o.MaxInFlight = 1 })
	for _, name := range []string{"q", "q.fifo"} {
		var q string
		if strings.HasSuffix(name, fifoSuffix) {
			q = f.create(name, "FifoQueue", "true", "ContentBasedDeduplication", "true")
			f.send(q, "a", "MessageGroupId", "g")
		} else {
			q = f.create(name)
			f.send(q, "a")
		}
		f.receive(q)
		status, header, out := f.post(context.Background(), "ReceiveMessage", object{"QueueUrl": q})
		if name == "q" {
			want(t, "status", status, 403)
			want(t, "code", header.Get("X-Amzn-Query-Error"), "OverLimit;Sender")
		} else if status != 200 || len(out) != 0 {
			t.Errorf("fifo: %d %v", status, out)
		}
	}
}

func TestReceiveStopsAtTheLimitInFlight(t *testing.T) {
	t.Parallel()
	f := setup(t, func(o *Options) { o.MaxInFlight = 3 })
	q := f.create("q")
	for _, body := range []string{"a", "b", "c", "d"} {
		f.send(q, body)
	}
	want(t, "received", bodies(f.receive(q, "MaxNumberOfMessages", 2)), "a b")
	want(t, "up to the limit", bodies(f.receive(q)), "c")
}

func TestJobsOfOtherProtocolsAreMessages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	core.DoOnce(f.engine, core.Faktory, &core.Submit{Job: &core.Job{
		Queue: "mail", ID: "some-jid", Type: "Welcome", Body: []byte(`["x"]`), Format: core.Args, Origin: core.Faktory,
		MaxFails: 3,
	}}, &core.Submit{Job: &core.Job{Queue: "mail", Body: []byte{0, 1}, Origin: core.Gearman}},
		&core.Submit{Job: &core.Job{Queue: "mail", Origin: core.Gearman}})
	got := f.receive("mail")
	want(t, "count", len(got), 3)
	attr := func(i int, name string) any {
		v, _ := got[i]["MessageAttributes"].(object)[name].(object)
		return v["StringValue"]
	}
	want(t, "body", got[0]["Body"], `["x"]`)
	want(t, "id", got[0]["MessageId"], "some-jid")
	want(t, "type", attr(0, attrType), "Welcome")
	want(t, "origin", attr(0, attrFrom), "faktory")
	want(t, "bytes", got[1]["Body"], "AAE=")
	want(t, "their encoding", attr(1, attrEncoding), "base64")
	want(t, "no bytes", got[2]["Body"], "")
}

// A Faktory job whose timeout ends has failed, and goes to its own retries.
func TestRedrivePolicyIsNotForJobsWithTheirOwnLimit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("dead")
	q := f.create("q", "VisibilityTimeout", "1", "RedrivePolicy",
		`{"deadLetterTargetArn":"arn:aws:sqs:x:1:dead","maxReceiveCount":1}`)
	core.DoOnce(f.engine, core.Faktory,
		&core.Submit{Job: &core.Job{
			Queue: "q", ID: "limited", Origin: core.Faktory, MaxFails: 3, LeaseEnd: core.LeaseEndFail,
		}},
		&core.Submit{Job: &core.Job{Queue: "q", ID: "unlimited", Origin: core.Beanstalk}},
	)
	want(t, "received", len(f.receive(q)), 2)
	f.advance(2 * time.Second)
	got := f.receive(q)
	want(t, "received again", len(got), 1)
	want(t, "its id", got[0]["MessageId"], "limited")
	want(t, "dead letters", f.receive("dead")[0]["MessageId"], "unlimited")
}
