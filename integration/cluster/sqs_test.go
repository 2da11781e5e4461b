package cluster_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"broker/integration/harness"
	"broker/integration/server"
	"broker/integration/sqsclient"
)

// Clients of SQS at all nodes lose no message when leaders are killed, and each group keeps its order.
func TestSQSMessagesSurviveLeaders(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, "")
	var clients []*sqs.Client
	dir := t.TempDir()
	for i := range c.nodes {
		addr, err := server.FreeAddr()
		check(t, err)
		c.nodes[i] = c.nodeOf(filepath.Join(dir, fmt.Sprint("n", i+1)), i,
			server.BrokerOptions{Args: []string{"--sqs", addr}})
		clients = append(clients, sqsclient.New(addr))
	}
	c.start()
	ledger, err := sqsclient.NewLedger(t.Context(), clients[0], "orders.fifo")
	check(t, err)
	running, stop := context.WithCancel(t.Context())
	defer stop()
	consuming, stopConsumers := context.WithCancel(t.Context())
	defer stopConsumers()
	var producers, consumers sync.WaitGroup
	for group := range 4 {
		from := group % size
		turned := append(clients[from:size:size], clients[:from]...)
		producers.Go(func() { ledger.Produce(running, strconv.Itoa(group), turned...) })
		consumers.Go(func() { ledger.Consume(consuming, turned...) })
	}
	for range 2 {
		time.Sleep(1500 * time.Millisecond)
		i := c.leader()
		c.nodes[i].Process.Kill()
		c.awaitLeaderOtherThan(i)
		c.restart(i)
	}
	time.Sleep(time.Second)
	harness.Eventually(t, func() string {
		if sent, _ := ledger.Verdict(); sent < 50 {
			return fmt.Sprint(sent, " messages are sent")
		}
		return ""
	})
	stop()
	producers.Wait()
	harness.Eventually(t, ledger.Missing)
	stopConsumers()
	consumers.Wait()
	sent, wrong := ledger.Verdict()
	if wrong != nil {
		t.Error(wrong)
	}
	t.Logf("%d messages over two leaders that were killed", sent)
}
