package sqs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
)

// visible makes received messages visible again, one after the other.
func (f *fixture) visible(queue string, messages ...object) {
	f.t.Helper()
	for _, m := range messages {
		f.do("ChangeMessageVisibility", object{
			"QueueUrl": queue, "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 0,
		})
		f.advance(time.Millisecond)
	}
}

// served returns the bodies that a consumer gets which sets the visibility of each message to 0, as sqs-consumer does
// after an error.
func (f *fixture) served(queue string, receives int) string {
	f.t.Helper()
	var all []string
	for range receives {
		got := f.receive(queue, "MaxNumberOfMessages", 1)
		all = append(all, bodies(got))
		f.visible(queue, got...)
	}
	return strings.Join(all, " ")
}

func TestFailingConsumerGetsAllMessagesOfAQueueInTurn(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q")
	for n := range 3 {
		f.send(q, fmt.Sprint("m", n))
	}
	f.advance(time.Millisecond)
	want(t, "standard queue", f.served(q, 7), "m0 m1 m2 m0 m1 m2 m0")
	f.send(q, "late")
	f.advance(time.Millisecond)
	want(t, "a later message", f.served(q, 4), "m1 m2 m0 late")
	f.restart()
	want(t, "after a restart", f.served(q, 3), "m1 m2 m0")
}

func TestFailingConsumerGetsAllGroupsOfAFIFOQueueInTurn(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.fifo("a1 a2 b1 c1 a3")
	f.advance(time.Millisecond)
	want(t, "groups", f.served(q, 7), "a1 b1 c1 a1 b1 c1 a1")
	f.send(q, "d1", "MessageGroupId", "d")
	f.advance(time.Millisecond)
	want(t, "a later group", f.served(q, 4), "b1 c1 a1 d1")
	got := f.receive(q)
	want(t, "the whole queue, each group in order", bodies(got), "b1 c1 a1 a2 a3 d1")
}

// A group has the same place by the end of the timeout as by a change to 0. These orders were recorded on AWS.
func TestGroupThatIsVisibleAgainIsBehindTheOthers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.fifo("a1 a2 b1", "VisibilityTimeout", "30")
	got := f.receive(q, "MaxNumberOfMessages", 2)
	want(t, "received", bodies(got), "a1 a2")
	f.advance(time.Millisecond)
	f.visible(q, got[0])
	want(t, "by a change, without the one that is in flight", bodies(f.receive(q, "MaxNumberOfMessages", 3)), "b1 a1")

	f = setup(t)
	q = f.fifo("a1 a2 a3 a4 b1 c1", "VisibilityTimeout", "1")
	want(t, "received", bodies(f.receive(q, "MaxNumberOfMessages", 2)), "a1 a2")
	f.advance(time.Millisecond)
	want(t, "received", bodies(f.receive(q, "MaxNumberOfMessages", 1)), "b1")
	f.advance(2 * time.Second)
	want(t, "by the timeout", bodies(f.receive(q)), "c1 a1 a2 a3 a4 b1")

	f = setup(t)
	q = f.fifo("a1 b1 b2 c1 a2")
	f.advance(time.Millisecond)
	want(t, "received", bodies(f.receive(q, "MaxNumberOfMessages", 3, "VisibilityTimeout", 0)), "a1 a2 b1")
	f.advance(time.Millisecond)
	want(t, "by a timeout of 0", bodies(f.receive(q)), "c1 a1 a2 b1 b2")
}

func TestReleasedMessagesOfADisconnectedReceiverKeepTheirPlace(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q")
	for n := range 2 {
		f.send(q, fmt.Sprint("m", n))
	}
	r := &request{front: f.Frontend, ctx: t.Context(), wire: &wireRequest{}}
	of, err := r.find("q")
	if err != nil {
		t.Fatal(err)
	}
	l := &leasing{q: r, of: of, in: &receiveInput{}, c: f.open(r.from), limit: 1}
	defer l.c.Close()
	l.request()
	if err := l.take(); err != nil {
		t.Fatal(err)
	}
	l.giveBack()
	want(t, "received", bodies(f.receive(q)), "m0 m1")
}

// The worker's protocol does not matter: the place is the policy of the message.
func TestMessageThatAnotherWorkerFailsOrLosesIsBehindTheOthers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, name := range []string{"q", "q.fifo"} {
		var q string
		if name == "q" {
			q = f.create("q")
			f.send(q, "a1")
			f.send(q, "b1")
		} else {
			q = f.fifo("a1 b1")
		}
		var all []string
		for range 3 {
			f.advance(time.Millisecond)
			all = append(all, f.take(name))
		}
		want(t, name+", lost", strings.Join(all, " "), "a1 b1 a1")
		worker := f.engine.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() {}})
		all = nil
		for range 3 {
			f.advance(time.Millisecond)
			lease := &core.Lease{Queues: []string{name}, Holder: core.HeldByConn}
			for _, r := range f.engine.Do(worker, []core.Op{lease}, nil) {
				if r.Kind == core.Assigned {
					all = append(all, string(r.Job.Body))
					f.engine.Do(worker, []core.Op{&core.Fail{
						Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone, Failure: &core.Failure{Type: "x"},
					}}, nil)
				}
			}
		}
		f.engine.Close(worker)
		want(t, name+", failed", strings.Join(all, " "), "b1 a1 b1")
		f.do("PurgeQueue", object{"QueueUrl": q})
	}
}
