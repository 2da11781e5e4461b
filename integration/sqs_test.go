package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"broker/integration/harness"
	"broker/integration/server"
)

// startSQS starts a broker with a port for SQS.
func startSQS(t *testing.T, config string) (*harness.Broker, string) {
	t.Helper()
	harness.BrokerOnly(t)
	addr, err := server.FreeAddr()
	check(t, err)
	return harness.Start(t, harness.Options{Config: config, Args: []string{"--sqs", addr}}), addr
}

func TestSQSFlowsOfPublishedClients(t *testing.T) {
	t.Parallel()
	const boto3Flows = "messages batches long_poll queues groups dead_letters"
	const keys = "[[principal]]\nname = \"shop\"\nsqs_access_key = \"AKIASHOP\"\nsqs_secret_key = \"se/cr+et\"\nroles = [\"admin\"]\n"
	for _, c := range []struct {
		name, config string
		argv         []string
		need, flows  string
	}{
		{"boto3 by Query", "", []string{"/usr/bin/python3", "python/sqs_boto3.py", "ADDR", "query"}, "python3-boto3", boto3Flows},
		{"boto3 by JSON", "", []string{"/usr/bin/python3", "python/sqs_boto3.py", "ADDR", "json"}, "python3-boto3", boto3Flows},
		{"boto3 with keys", keys, []string{"/usr/bin/python3", "python/sqs_boto3.py", "ADDR", "query", "AKIASHOP", "se/cr+et"}, "python3-boto3", boto3Flows},
		{"boto3 by JSON with keys", keys, []string{"/usr/bin/python3", "python/sqs_boto3.py", "ADDR", "json", "AKIASHOP", "se/cr+et"}, "python3-boto3", boto3Flows},
		{"client-sqs and sqs-consumer", "", []string{"node", "node/sqs.mjs", "ADDR"}, "node", "sends consumes closes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if harness.Need(t, c.need); c.need == "node" {
				harness.NeedNode(t)
			}
			_, addr := startSQS(t, c.config)
			argv := append([]string{c.argv[0], harness.Script(t, c.argv[1]), addr}, c.argv[3:]...)
			printed := harness.Run(t, harness.Command{Argv: argv, Env: []string{"NODE_NO_WARNINGS=1"}})
			equal(t, "flows", strings.Join(strings.Fields(printed), " "), c.flows)
		})
	}
}

func TestCeleryOnSQS(t *testing.T) {
	t.Parallel()
	harness.Need(t, "python3-celery")
	_, addr := startSQS(t, "")
	script, dir := harness.Script(t, "python/sqs_celery.py"), t.TempDir()
	harness.Run(t, harness.Command{Argv: []string{"/usr/bin/python3", script, addr, "produce"}})
	harness.Spawn(t, harness.Command{Argv: []string{"/usr/bin/python3", script, addr, "worker", dir}})
	harness.Eventually(t, func() string {
		done, _ := filepath.Glob(filepath.Join(dir, "work-*"))
		again, _ := os.ReadFile(filepath.Join(dir, "again"))
		if len(done) == 20 && string(again) == "xx" {
			return ""
		}
		return fmt.Sprintf("%d tasks ran, the one that is retried %d times", len(done), len(again))
	})
}

// sqsClient is a client that tries for as long as the broker is away.
func sqsClient(addr string) *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint: aws.String("http://" + addr), Region: "us-east-1", RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
}

// sqsLedger is what clients know of their messages.
type sqsLedger struct {
	mu       sync.Mutex
	sent     map[string]bool // acknowledged
	deleted  map[string]bool // acknowledged
	returned []string        // received after the deletion was acknowledged
	swapped  []string        // received in a group before an earlier one was deleted
	tried    map[string]bool // deletions that were asked for
}

// Nothing that was acknowledged is lost over kills, nothing that was deleted comes back, and each group keeps its order.
func TestSQSMessagesSurviveKills(t *testing.T) {
	t.Parallel()
	b, addr := startSQS(t, "")
	c, ctx := sqsClient(addr), t.Context()
	made, err := c.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: aws.String("orders.fifo"), Attributes: map[string]string{"FifoQueue": "true", "VisibilityTimeout": "2"},
	})
	check(t, err)
	url := made.QueueUrl
	ledger := &sqsLedger{sent: map[string]bool{}, deleted: map[string]bool{}, tried: map[string]bool{}}
	running, stop := context.WithTimeout(ctx, 9*time.Second)
	defer stop()
	var producers, consumers sync.WaitGroup
	for group := range 4 {
		producers.Go(func() { ledger.produce(running, c, url, strconv.Itoa(group)) })
	}
	consuming, stopConsumers := context.WithCancel(ctx)
	defer stopConsumers()
	for range 3 {
		consumers.Go(func() { ledger.consume(consuming, c, url) })
	}
	for range 3 {
		time.Sleep(2 * time.Second)
		b.Crash()
		b.Restart()
	}
	producers.Wait()
	harness.Eventually(t, func() string {
		ledger.mu.Lock()
		defer ledger.mu.Unlock()
		for body := range ledger.sent {
			if !ledger.deleted[body] {
				return fmt.Sprintf("%s is not handled; %d of %d are", body, len(ledger.deleted), len(ledger.sent))
			}
		}
		return ""
	})
	stopConsumers()
	consumers.Wait()
	if len(ledger.sent) < 50 || len(ledger.returned) > 0 || len(ledger.swapped) > 0 {
		t.Errorf("%d sent, came back %v, out of order %v", len(ledger.sent), ledger.returned, ledger.swapped)
	}
	t.Logf("%d messages over three kills", len(ledger.sent))
}

// produce sends numbered messages of a group, one after the other, until ctx is done. One that may or may not have been sent is
// sent again with its deduplication id.
func (l *sqsLedger) produce(ctx context.Context, c *sqs.Client, url *string, group string) {
	for n := 1; ctx.Err() == nil; n++ {
		body := group + "-" + strconv.Itoa(n)
		in := &sqs.SendMessageInput{QueueUrl: url, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &body}
		for {
			if _, err := c.SendMessage(context.WithoutCancel(ctx), in); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		l.mu.Lock()
		l.sent[body] = true
		l.mu.Unlock()
	}
}

// consume receives and deletes until ctx is done.
func (l *sqsLedger) consume(ctx context.Context, c *sqs.Client, url *string) {
	for ctx.Err() == nil {
		got, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
		})
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		for _, m := range got.Messages {
			l.handle(ctx, c, url, &m)
		}
	}
}

func (l *sqsLedger) handle(ctx context.Context, c *sqs.Client, url *string, m *types.Message) {
	group, number, _ := strings.Cut(*m.Body, "-")
	n, _ := strconv.Atoi(number)
	before := fmt.Sprintf("%s-%d", group, n-1)
	l.mu.Lock()
	if l.deleted[*m.Body] {
		l.returned = append(l.returned, *m.Body)
	}
	if n > 1 && !l.tried[before] {
		l.swapped = append(l.swapped, *m.Body+" before "+before)
	}
	l.tried[*m.Body] = true
	l.mu.Unlock()
	for ctx.Err() == nil {
		_, err := c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle})
		if refused := smithy.APIError(nil); errors.As(err, &refused) && refused.ErrorFault() == smithy.FaultClient {
			return // the handle has expired: the message comes again
		}
		if err == nil {
			l.mu.Lock()
			l.deleted[*m.Body] = true
			l.mu.Unlock()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
