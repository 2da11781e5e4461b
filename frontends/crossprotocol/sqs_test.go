package crossprotocol

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends/frontendtest"
	"broker/frontends/sqs"
)

// sqsClient calls the actions of SQS on the broker of an env.
type sqsClient struct {
	e *env
	f *sqs.Frontend
}

func (e *env) openSQS() sqsClient {
	e.t.Helper()
	f := sqs.New(access.Unrestricted(e.workq.Broker, core.SQS), sqs.Options{
		Account: "000000000000", Region: "us-east-1",
	})
	if err := f.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(f.Close)
	return sqsClient{e, f}
}

// call calls an action with members of JSON and decodes the reply.
func (c sqsClient) call(action, members string, into any) {
	c.e.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"QueueUrl":"`+queue+`",`+members+`}`))
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	w := httptest.NewRecorder()
	c.f.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		c.e.t.Fatalf("%s: %d %s", action, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		c.e.t.Fatal(err)
	}
}

// counts returns the message counts of the queue for SQS clients.
func (c sqsClient) counts() string {
	var out struct{ Attributes map[string]string }
	c.call("GetQueueAttributes", `"AttributeNames":["All"]`, &out)
	var parts []string
	for _, name := range []string{"", "NotVisible", "Delayed"} {
		parts = append(parts, out.Attributes["ApproximateNumberOfMessages"+name])
	}
	return strings.Join(parts, "/")
}

// sqsMessage runs a message of SQS with a worker of another protocol.
func sqsMessage(t *testing.T, k workerKind, end int) string {
	t.Helper()
	e := newEnv(t, frontendtest.InMemory)
	c := e.openSQS()
	c.call("CreateQueue", `"QueueName":"`+queue+`"`, &struct{}{})
	c.call("SendMessage", `"MessageBody":"hi"`, &struct{}{})
	e.jobSeq, e.jobCreatedAt = e.newest(queue), e.workq.Clock.Now()
	w := k.take(e)
	if w == nil {
		t.Fatal("no worker gets the message")
	}
	if got := c.counts(); got != "0/1/0" {
		t.Errorf("in the hands of %s the queue has %s", k.name, got)
	}
	ends[end].run(e, w)
	return "messages: " + c.counts() + "; job: " + e.state(e.jobSeq)
}

// sqsEnds are the ways in which a receiver ends its work.
var sqsEnds = []struct {
	name string
	run  func(c sqsClient, handle string)
}{
	{"delete", func(c sqsClient, handle string) {
		c.call("DeleteMessage", `"ReceiptHandle":"`+handle+`"`, &struct{}{})
	}},
	{"visibility 0", func(c sqsClient, handle string) {
		c.call("ChangeMessageVisibility", `"VisibilityTimeout":0,"ReceiptHandle":"`+handle+`"`, &struct{}{})
		c.e.advance(time.Millisecond)
	}},
	{"timeout", func(c sqsClient, _ string) { c.e.advance(31 * time.Second) }},
}

// sqsReceiver runs a job of another protocol with a receiver of SQS.
func sqsReceiver(t *testing.T, o origin, end int) string {
	t.Helper()
	e := newEnv(t, frontendtest.InMemory)
	c := e.openSQS()
	report := o.submit(e, jobTimes{ttr, ttl})
	seq := e.newest(queue)
	var got struct {
		Messages []struct{ Body, ReceiptHandle string }
	}
	c.call("ReceiveMessage", `"VisibilityTimeout":30`, &got)
	if len(got.Messages) != 1 {
		t.Fatalf("received %v", got)
	}
	if state := e.state(seq); state != "leased" {
		t.Errorf("a received job is %s", state)
	}
	sqsEnds[end].run(c, got.Messages[0].ReceiptHandle)
	return fmt.Sprintf("body: `%s`; client: %s; job: %s", got.Messages[0].Body, report(), e.state(seq))
}

// TestSQSSharingTable runs every cell of the tables about SQS and compares the results with docs/sharing.md.
func TestSQSSharingTable(t *testing.T) {
	t.Parallel()
	var names []string
	for _, end := range sqsEnds {
		names = append(names, end.name)
	}
	sharingSection(t, section{
		name: "sqs", submitted: "SQS message", works: "SQS receiver", ends: names, submit: sqsMessage,
		work: sqsReceiver,
	})
}
