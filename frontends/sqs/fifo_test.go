package sqs

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"broker/core"
)

// fifo makes a FIFO queue with messages, whose groups are their first letters.
func (f *fixture) fifo(messages string, attributes ...string) string {
	f.t.Helper()
	q := f.create("q.fifo",
		append([]string{"FifoQueue", "true", "ContentBasedDeduplication", "true"}, attributes...)...)
	for m := range strings.FieldsSeq(messages) {
		f.send(q, m, "MessageGroupId", m[:1])
	}
	return q
}

func TestReceiveReturnsMessagesOfAGroupInOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.fifo("a1 b1 a2 a3 b2", "VisibilityTimeout", "5")
	got := f.receive(q, "MaxNumberOfMessages", 4)
	want(t, "first reply", bodies(got), "a1 a2 a3 b1")
	want(t, "blocked by those in flight", bodies(f.receive(q)), "")
	f.send(q, "a4", "MessageGroupId", "a")
	want(t, "a later one of the group too", bodies(f.receive(q)), "")
	want(t, "blocked ones count as visible", f.attributesOf(q)[countVisible], "2")
	for _, m := range got[1:] { // a1 stays in flight
		f.do("DeleteMessage", object{"QueueUrl": q, "ReceiptHandle": m["ReceiptHandle"]})
	}
	want(t, "the group whose head is in flight waits", bodies(f.receive(q)), "b2")
	f.do("DeleteMessage", object{"QueueUrl": q, "ReceiptHandle": got[0]["ReceiptHandle"]})
	want(t, "once it is deleted", bodies(f.receive(q)), "a4")
}

func TestReleasedMessageOfAGroupIsReceivedAlone(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.fifo("a1 a2 a3 a4", "VisibilityTimeout", "10")
	got := f.receive(q, "MaxNumberOfMessages", 3)
	visible := func(m object, timeout int) {
		f.do("ChangeMessageVisibility",
			object{"QueueUrl": q, "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": timeout})
		f.engine.Tick()
	}
	visible(got[1], 0)
	want(t, "its head is in flight", bodies(f.receive(q)), "")
	visible(got[0], 0)
	want(t, "two released ones, not the one behind that is in flight", bodies(f.receive(q)), "a1 a2")
	f.advance(11 * time.Second)
	got = f.receive(q)
	want(t, "all have timed out", bodies(got), "a1 a2 a3 a4")
	visible(got[0], 30)
	f.advance(11 * time.Second)
	want(t, "the extended head holds those behind it", bodies(f.receive(q)), "")
	f.restart()
	want(t, "after a restart, too", bodies(f.receive(q)), "")
	f.advance(31 * time.Second)
	want(t, "and then in order", bodies(f.receive(q)), "a1 a2 a3 a4")
}

// The timer of a lease may fire late. In this test it never fires.
func TestHandleOfAFIFOQueueExpiresByTheClock(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.fifo("a1 a2", "VisibilityTimeout", "5")
	got := f.receive(q)
	finish := func(action string, m object) int {
		status, _, _ := f.post(t.Context(), action,
			object{"QueueUrl": q, "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 9})
		return status
	}
	f.clock.Advance(5*time.Second - time.Millisecond)
	want(t, "just before the end", finish("DeleteMessage", got[0]), http.StatusOK)
	f.clock.Advance(time.Millisecond)
	want(t, "visibility after the end", finish("ChangeMessageVisibility", got[1]), http.StatusBadRequest)
	want(t, "deletion after the end", finish("DeleteMessage", got[1]), http.StatusBadRequest)
	f.engine.Tick()
	want(t, "visible again", bodies(f.receive(q)), "a2")
}

func TestDeadLetterUnblocksItsGroup(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("dead.fifo", "FifoQueue", "true")
	q := f.fifo("a1 a2 a3", "RedrivePolicy",
		`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead.fifo","maxReceiveCount":1}`,
		"VisibilityTimeout", "5")
	want(t, "first receive", bodies(f.receive(q, "MaxNumberOfMessages", 1)), "a1")
	f.advance(6 * time.Second)
	want(t, "the next one comes in place of the dead letter", bodies(f.receive(q, "MaxNumberOfMessages", 1)), "a2")
	want(t, "it has moved", bodies(f.receive("dead.fifo")), "a1")
}

func TestWorkersOfOtherProtocolsKeepTheOrderOfGroups(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.fifo("a1 a2 b1")
	worker := f.engine.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() {}})
	defer f.engine.Close(worker)
	lease := func() (got string) {
		for _, r := range f.engine.Do(worker,
			[]core.Op{&core.Lease{Queues: []string{"q.fifo"}, Holder: core.HeldByNobody, LeaseFor: time.Minute}}, nil) {
			if r.Kind == core.Assigned {
				got = string(r.Job.Body)
			}
		}
		return got
	}
	want(t, "a worker", lease(), "a1")
	want(t, "a receiver", bodies(f.receive(q)), "b1")
	want(t, "a worker again", lease(), "")
}
