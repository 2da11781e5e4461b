//go:build nightly

package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

func TestListingThousandsOfWorkersDoesNotDelayOthers(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: other tests would affect its durations
	b := start(t)
	const workers, functions, perWorker = 5000, 1000, 3
	for i := range workers {
		w := harness.DialGearman(t, b)
		var packets []byte
		for k := range perWorker {
			packets = gearmanclient.Append(packets, gearmanclient.CanDo, fmt.Sprintf("function-%04d", (i+k)%functions))
		}
		check(t, w.Write(gearmanclient.Append(packets, gearmanclient.PreSleep)))
	}
	submitMany(t, b, "idle-queue", 100_000)

	// An echo on another connection must not wait for the listings.
	stop, slowest := make(chan struct{}), make(chan time.Duration)
	go func() { slowest <- slowestEcho(t, b, stop) }() // ends with stop, below
	c := harness.DialGearman(t, b)
	// There are also the queue and a few connections of this test.
	for command, rows := range map[string]int{"status": functions, "workers": workers} {
		begin := time.Now()
		lines, err := c.AdminList(command)
		check(t, err)
		if n := len(lines); n <= rows || n > rows+5 {
			t.Errorf("%s has %d rows, want about %d", command, n, rows)
		}
		if took := time.Since(begin); took > 5*time.Second { // one second on an idle machine
			t.Errorf("%s took %v", command, took)
		}
	}
	close(stop)
	if worst := <-slowest; worst > 2*time.Second {
		t.Errorf("an echo took %v during the listings", worst)
	}
}

func slowestEcho(t *testing.T, b *harness.Broker, stop <-chan struct{}) time.Duration {
	c := harness.DialGearman(t, b)
	var worst time.Duration
	for {
		select {
		case <-stop:
			return worst
		default:
		}
		begin := time.Now()
		err := c.Send(gearmanclient.EchoReq, "x")
		if err == nil {
			_, err = c.Expect(gearmanclient.EchoRes, harness.Patience)
		}
		if err != nil {
			t.Error(err)
			return worst
		}
		worst = max(worst, time.Since(begin))
	}
}

func TestAPushWakesExactlyOneOfManyFetches(t *testing.T) {
	b := start(t) // not parallel: other tests would affect its durations
	harness.BrokerOnly(t)
	const fetchers, idle = 2000, 3000
	for range idle {
		_ = dialFaktory(t, b)
	}
	type fetched struct {
		jid string
		at  time.Time
	}
	got := make(chan fetched, fetchers)
	var done sync.WaitGroup
	stop := make(chan struct{})
	for range fetchers {
		c := dialFaktory(t, b)
		done.Go(func() { // ends with stop
			for {
				select {
				case <-stop:
					return
				default:
				}
				begin := time.Now()
				job, err := c.Fetch("q1", "q2", "q3", "q4", "woken")
				if err != nil {
					t.Error(err)
					return
				}
				if waited := time.Since(begin); job == nil && waited < 1900*time.Millisecond {
					t.Errorf("a fetch returned without a job after %v", waited)
				}
				if job != nil {
					got <- fetched{job.Jid, time.Now()}
				}
			}
		})
	}
	pusher := dialFaktory(t, b)
	harness.Eventually(t, func() string {
		if n := fktState(t, pusher).Server.Connections; n != fetchers+idle+1 {
			return fmt.Sprintf("%d connections", n)
		}
		return ""
	})
	const pushes = 100
	latencies := make([]time.Duration, pushes)
	for i := range latencies {
		job := fktJob("woken", i)
		begin := time.Now()
		check(t, pusher.Push(job))
		select {
		case f := <-got:
			equal(t, "jid", f.jid, job.Jid)
			latencies[i] = f.at.Sub(begin)
		case <-time.After(harness.Patience):
			t.Fatal("no fetch received the job")
		}
	}
	close(stop)
	done.Wait()
	equal(t, "jobs fetched beyond those pushed", len(got), 0)
	slices.Sort(latencies)
	if median := latencies[pushes/2]; median > 20*time.Millisecond { // 2 ms on an idle machine
		t.Errorf("the median time from push to a waiting fetch is %v", median)
	}
	t.Logf("push to fetch: median %v, slowest %v", latencies[pushes/2], latencies[pushes-1])
}

func TestClientsThatDoNotReadCostBoundedMemory(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: it measures memory
	b := harness.Start(t, harness.Options{Config: "[limits]\noutput_bytes = \"4 MiB\"\n"})
	w := harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "large"))
	before, err := server.ResidentBytes(b.PID())
	check(t, err)
	// These clients request echoes and read none; the broker stops reading or cuts them off.
	const deaf, packet, packets = 10, 1 << 20, 256
	payload := strings.Repeat("x", packet)
	var writers sync.WaitGroup
	for range deaf {
		c := harness.DialGearman(t, b)
		writers.Go(func() { // ends when everything is written, or the connection breaks or is stuck
			for range packets {
				if c.WriteWithin(2*time.Second, gearmanclient.Append(nil, gearmanclient.EchoReq, payload)) != nil {
					return
				}
			}
		})
	}
	bystander := harness.DialGearman(t, b)
	for range 20 {
		check(t, bystander.Send(gearmanclient.EchoReq, "still quick?"))
		_, err := bystander.Expect(gearmanclient.EchoRes, harness.Patience)
		check(t, err)
	}
	writers.Wait()
	after, err := server.ResidentBytes(b.PID())
	check(t, err)
	// an eighth of what the clients tried to send
	if grown, most := after-before, int64(deaf*packet*packets/8); grown > most {
		t.Errorf("%d clients that do not read cost %d MiB", deaf, grown>>20)
	}
	handle, err := bystander.Submit(gearmanclient.SubmitJob, "large", "", "x")
	check(t, err)
	_, _, _, _, err = w.Grab(harness.Patience)
	check(t, err)
	check(t, w.Send(gearmanclient.WorkComplete, handle, "done"))
	_, err = bystander.Expect(gearmanclient.WorkComplete, harness.Patience)
	check(t, err)
}

func TestIdleConnectionsAreCheap(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: it measures memory
	b := start(t)
	before, err := server.ResidentBytes(b.PID())
	check(t, err)
	const each = 2000
	for range each {
		_ = harness.DialGearman(t, b)
		_ = harness.DialWorkq(t, b)
		_ = dialFaktory(t, b)
	}
	after, err := server.ResidentBytes(b.PID())
	check(t, err)
	perConnection := (after - before) / (3 * each)
	t.Logf("%d bytes per connection", perConnection)
	if perConnection > 40<<10 { // 20,000 connections in 400 MB would allow half of it
		t.Errorf("%d bytes per connection", perConnection)
	}
}
