package integration_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
	"broker/integration/sqsclient"
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
		{"boto3 by Query", "", []string{
			"/usr/bin/python3", "python/sqs_boto3.py", "ADDR", "query",
		}, "python3-boto3", boto3Flows},
		{"boto3 by JSON", "", []string{
			"/usr/bin/python3", "python/sqs_boto3.py", "ADDR", "json",
		}, "python3-boto3", boto3Flows},
		{"boto3 with keys", keys, []string{
			"/usr/bin/python3", "python/sqs_boto3.py", "ADDR", "query", "AKIASHOP", "se/cr+et",
		}, "python3-boto3", boto3Flows},
		{"boto3 by JSON with keys", keys, []string{
			"/usr/bin/python3", "python/sqs_boto3.py", "ADDR", "json", "AKIASHOP", "se/cr+et",
		}, "python3-boto3", boto3Flows},
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
	for range 2 { // one of them kills itself
		harness.Spawn(t, harness.Command{Argv: []string{"/usr/bin/python3", script, addr, "worker", dir}})
	}
	harness.Eventually(t, func() string {
		done, _ := filepath.Glob(filepath.Join(dir, "work-*"))
		again, _ := os.ReadFile(filepath.Join(dir, "again"))
		dies, _ := os.ReadFile(filepath.Join(dir, "dies"))
		if len(done) == 20 && len(again) >= 2 && len(dies) >= 2 {
			return ""
		}
		return fmt.Sprintf("%d tasks ran, the one that is retried %d times, the one that kills its worker %d times",
			len(done), len(again), len(dies))
	})
}

// Nothing that was acknowledged is lost over kills, nothing that was deleted comes back, and each group keeps its
// order.
func TestSQSMessagesSurviveKills(t *testing.T) {
	t.Parallel()
	b, addr := startSQS(t, "")
	c, ctx := sqsclient.New(addr), t.Context()
	ledger, err := sqsclient.NewLedger(ctx, c, "orders.fifo")
	check(t, err)
	running, stop := context.WithCancel(ctx)
	defer stop()
	var producers, consumers sync.WaitGroup
	for group := range 4 {
		producers.Go(func() { ledger.Produce(running, strconv.Itoa(group), c) })
	}
	consuming, stopConsumers := context.WithCancel(ctx)
	defer stopConsumers()
	for range 3 {
		consumers.Go(func() { ledger.Consume(consuming, c) })
	}
	for range 3 {
		time.Sleep(2 * time.Second)
		b.Crash()
		b.Restart()
	}
	time.Sleep(2 * time.Second)
	harness.Eventually(t, func() string {
		if sent, _ := ledger.Verdict(); sent < 50 {
			return fmt.Sprintf("%d messages were sent", sent)
		}
		return ""
	})
	stop()
	producers.Wait()
	harness.Eventually(t, ledger.Missing)
	stopConsumers()
	consumers.Wait()
	sent, wrong := ledger.Verdict()
	check(t, wrong)
	t.Logf("%d messages over three kills", sent)
}
