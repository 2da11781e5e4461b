// Package sqsclient keeps a ledger of what clients of SQS know about the messages of a FIFO queue, while brokers are
// killed.
package sqsclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// visibility is how many seconds a message of Ledger's queue stays with its receiver.
const visibility = 2

// wait is between two tries while no broker answers.
const wait = 20 * time.Millisecond

// New is a client of a broker. It tries a request once, on a connection that the broker has no reason to close: it
// closes those that were idle for ten seconds without a login.
func New(addr string) *sqs.Client {
	return sqs.New(sqs.Options{
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.IdleConnTimeout = 5 * time.Second
		}),
		BaseEndpoint: aws.String("http://" + addr), Region: "us-east-1", RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
}

// Ledger is what the clients of one FIFO queue know of its messages.
type Ledger struct {
	url *string

	mu       sync.Mutex           // guards what follows
	sent     map[string]bool      // acknowledged
	deleted  map[string]time.Time // when the deletion was acknowledged
	events   map[string][]string  // what happened to each message, in order
	returned []string             // requested and received after the deletion was acknowledged
	swapped  []string             // received in a group before an earlier one was deleted
	tried    map[string]bool      // deletions that were requested
}

// NewLedger makes a FIFO queue and its ledger.
func NewLedger(ctx context.Context, c *sqs.Client, queue string) (*Ledger, error) {
	made, err := c.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName:  &queue,
		Attributes: map[string]string{"FifoQueue": "true", "VisibilityTimeout": strconv.Itoa(visibility)},
	})
	if err != nil {
		return nil, err
	}
	return &Ledger{
		url: made.QueueUrl, sent: map[string]bool{}, deleted: map[string]time.Time{}, tried: map[string]bool{},
		events: map[string][]string{},
	}, nil
}

// note notes what happened to a message. The caller holds mu.
func (l *Ledger) note(body, format string, args ...any) {
	l.events[body] = append(l.events[body], time.Now().Format("15:04:05.000000 ")+fmt.Sprintf(format, args...))
}

// Missing names a message that was sent and is not deleted yet; empty: there is none.
func (l *Ledger) Missing() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for body := range l.sent {
		if l.deleted[body].IsZero() {
			return fmt.Sprintf("%s is not handled; %d of %d are", body, len(l.deleted), len(l.sent))
		}
	}
	return ""
}

// Verdict is the number of messages that were sent, and an error if one came back or was out of order.
func (l *Ledger) Verdict() (sent int, wrong error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.returned) > 0 || len(l.swapped) > 0 {
		wrong = fmt.Errorf("came back %v, out of order %v", l.returned, l.swapped)
		for _, body := range append(l.returned, l.swapped...) {
			body, _, _ = strings.Cut(body, " ")
			wrong = fmt.Errorf("%w\n%s:\n\t%s", wrong, body, strings.Join(l.events[body], "\n\t"))
		}
	}
	return len(l.sent), wrong
}

// Produce sends numbered messages of a group, one after the other, until ctx is done. If the outcome of a request is
// unknown, the next of the clients sends the message again with its deduplication id.
func (l *Ledger) Produce(ctx context.Context, group string, clients ...*sqs.Client) {
	for n, at := 1, 0; ctx.Err() == nil; n++ {
		body := group + "-" + strconv.Itoa(n)
		in := &sqs.SendMessageInput{
			QueueUrl: l.url, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &body,
		}
		for {
			out, err := clients[at%len(clients)].SendMessage(context.WithoutCancel(ctx), in)
			l.mu.Lock()
			if err != nil {
				l.note(body, "send: %v", err)
			} else {
				l.note(body, "sent as %s, %s", *out.MessageId, *out.SequenceNumber)
			}
			l.mu.Unlock()
			if err == nil {
				break
			}
			at++
			time.Sleep(wait)
		}
		l.mu.Lock()
		l.sent[body] = true
		l.mu.Unlock()
	}
}

// Consume receives and deletes until ctx is done.
func (l *Ledger) Consume(ctx context.Context, clients ...*sqs.Client) {
	for at := 0; ctx.Err() == nil; {
		c := clients[at%len(clients)]
		asked := time.Now()
		got, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: l.url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
		})
		if err != nil {
			at++
			time.Sleep(wait)
			continue
		}
		for i := range got.Messages {
			l.handle(ctx, &got.Messages[i], asked, clients[at%len(clients):]...)
		}
	}
}

// handle deletes a message that was received with a request sent at asked. While it waited behind others of its batch,
// its lease may have ended and another consumer may have deleted it. It has not come back then.
func (l *Ledger) handle(ctx context.Context, m *types.Message, asked time.Time, clients ...*sqs.Client) {
	group, number, _ := strings.Cut(*m.Body, "-")
	n, _ := strconv.Atoi(number)
	before := fmt.Sprintf("%s-%d", group, n-1)
	l.mu.Lock()
	l.note(*m.Body, "received %s as asked at %s with %v", *m.MessageId, asked.Format("05.000000"), m.Attributes)
	if at := l.deleted[*m.Body]; !at.IsZero() && at.Before(asked) {
		l.returned = append(l.returned, *m.Body)
	}
	if n > 1 && !l.tried[before] {
		l.swapped = append(l.swapped, *m.Body+" before "+before)
	}
	l.tried[*m.Body] = true
	l.mu.Unlock()
	for at := 0; ctx.Err() == nil; at++ {
		asked := time.Now()
		_, err := clients[at%len(clients)].DeleteMessage(ctx,
			&sqs.DeleteMessageInput{QueueUrl: l.url, ReceiptHandle: m.ReceiptHandle})
		l.mu.Lock()
		l.note(*m.Body, "deleted as asked at %s through %d: %v", asked.Format("05.000000"), at, err)
		l.mu.Unlock()
		if refused := smithy.APIError(nil); errors.As(err, &refused) && refused.ErrorFault() == smithy.FaultClient {
			return // the handle has expired: the message comes again
		}
		if err == nil {
			l.mu.Lock()
			l.deleted[*m.Body] = time.Now()
			l.mu.Unlock()
			return
		}
		time.Sleep(wait)
	}
}
