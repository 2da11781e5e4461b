package crossprotocol

import (
	"fmt"
	"testing"
	"time"

	"broker/core"
	"broker/frontends/frontendtest"
)

// A message that workers of any protocol have taken as often as the redrive policy allows becomes a dead letter at the
// next request of such a worker. No client of SQS receives from its queue.
func TestMessageBecomesADeadLetterByWorkersOfEveryProtocol(t *testing.T) {
	t.Parallel()
	for _, k := range workerKinds() {
		for _, end := range []int{1, 2, 3} { // it fails, the worker is lost, the lease expires
			t.Run(k.name+", "+ends[end].name, func(t *testing.T) {
				t.Parallel()
				e := newEnv(t, frontendtest.InMemory)
				c := e.openSQS()
				c.call("CreateQueue", `"QueueName":"dead"`, &struct{}{})
				c.call("CreateQueue", `"QueueName":"`+queue+`","Attributes":{"VisibilityTimeout":"30","RedrivePolicy":`+
					`"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dead\",\"maxReceiveCount\":2}"}`, &struct{}{})
				c.call("SendMessage", `"MessageBody":"hi"`, &struct{}{})
				e.jobSeq, e.jobCreatedAt = e.newest(queue), e.workq.Clock.Now()
				for n := range 2 {
					w := k.take(e)
					if w == nil {
						t.Fatalf("take %d: no worker gets the message", n+1)
					}
					ends[end].run(e, w)
					if w.conn != nil && ends[end].name == "lease expired" {
						w.conn.Hangup()
					}
					if got := e.state(e.jobSeq); got == "leased" { // HTTP workers have no connection to lose
						e.advance(lateness)
					}
					if got := c.counts(); got != "1/0/0" {
						t.Fatalf("after take %d the queue has %s", n+1, got)
					}
				}
				if w := k.take(e); w != nil {
					t.Fatal("a worker gets the message a third time")
				}
				if got := c.counts(); got != "0/0/0" {
					t.Errorf("the queue has %s", got)
				}
				var got struct {
					Messages []struct {
						Body       string
						Attributes map[string]string
					}
				}
				c.call("ReceiveMessage", `"AttributeNames":["All"],"QueueUrl":"dead"`, &got)
				text := ""
				for _, m := range got.Messages {
					text += fmt.Sprint(m.Body, " ", m.Attributes["ApproximateReceiveCount"], " ",
						m.Attributes["DeadLetterQueueSourceArn"])
				}
				if text != "hi 3 arn:aws:sqs:us-east-1:000000000000:"+queue {
					t.Errorf("dead letters: %s", text)
				}
			})
		}
	}
}

// The ttr of a Workq job is its visibility timeout, unless the receiver names one. Until it ends the job is neither
// visible nor a dead letter, however short the timeout of the queue is.
func TestWorkqJobBecomesADeadLetterOnceItsOwnTTREnds(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		e := newEnv(t, frontendtest.InMemory)
		c := e.openSQS()
		c.call("CreateQueue", `"QueueName":"dead"`, &struct{}{})
		c.call("CreateQueue", `"QueueName":"`+queue+`","Attributes":{"VisibilityTimeout":"30","RedrivePolicy":"{`+
			`\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dead\",\"maxReceiveCount\":2}"}`, &struct{}{})
		workqAdd(false)(e, jobTimes{ttr, ttl})
		members, lasts := `"MaxNumberOfMessages":1`, ttr
		if named {
			members, lasts = `"VisibilityTimeout":5`, 5*time.Second
		}
		receive := func() int {
			var got struct{ Messages []struct{ Body string } }
			c.call("ReceiveMessage", members, &got)
			return len(got.Messages)
		}
		for n := range 2 {
			if got := receive(); got != 1 {
				t.Fatalf("receive %d: %d messages", n+1, got)
			}
			e.advance(lasts - time.Second)
			if got := c.counts() + " " + fmt.Sprint(receive()); got != "0/1/0 0" {
				t.Errorf("before its end the queue has and gives %s", got)
			}
			e.advance(time.Second + lateness)
		}
		if got := fmt.Sprint(receive()) + " " + c.counts(); got != "0 0/0/0" {
			t.Errorf("the third receive gives and leaves %s", got)
		}
		if jobs := e.do(&core.ListJobs{Queue: "dead", State: core.Ready, Brief: true, Limit: 10}).Jobs; len(jobs) != 1 {
			t.Errorf("%d dead letters", len(jobs))
		}
	}
}
