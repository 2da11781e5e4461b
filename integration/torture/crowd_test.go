//go:build nightly

package torture_test

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

func TestSlowReadersCostBoundedMemory(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: it measures memory and time
	b := harness.Start(t, harness.Options{Config: "[limits]\noutput_bytes = \"1 MiB\"\n"})
	p := newProbe(t, b)
	const readers = 1000
	const limit = 2 << 20 // the output limit, and as much for one larger reply
	p.during(fmt.Sprintf("%d clients that read nothing", readers), readers*limit, func() {
		var writers sync.WaitGroup
		payload := strings.Repeat("x", 256<<10)
		for range readers {
			c := harness.DialGearman(t, b)
			writers.Go(func() { // ends when the broker stops reading or cuts it off
				for range 64 {
					if c.WriteWithin(time.Second, gearmanclient.Append(nil, gearmanclient.EchoReq, payload)) != nil {
						return
					}
				}
			})
		}
		writers.Wait()
	})
	p.during("the same, once they are stuck or cut off", readers*limit, func() { time.Sleep(time.Second) })
}

func TestClientsThatSendAByteAtATimeAreServed(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: it measures memory and time
	b := harness.Start(t, harness.Options{})
	p := newProbe(t, b)
	const clients, pause = 1000, time.Second
	p.during(fmt.Sprintf("%d clients that send a byte every %v", clients, pause), 64*mib, func() {
		var all sync.WaitGroup
		for n := range clients {
			address, text, want := b.Gearman, "version\n", "OK "
			switch n % 3 {
			case 1:
				address, text, want = b.Workq, "lease slow 0\r\n", "-TIMEOUT\r\n"
			case 2:
				address, text, want = b.Faktory, "QUEUE LIST\r\n", "-ERR "
			}
			c := dial(t, address)
			if n%3 == 2 { // the greeting has a deadline of its own
				_, err := io.WriteString(c, "HELLO {\"v\":2}\r\n")
				check(t, err)
				in := bufio.NewReader(c)
				for range 2 {
					_, err := in.ReadString('\n')
					check(t, err)
				}
			}
			all.Go(func() { // ends with the reply
				for i := range len(text) {
					time.Sleep(pause)
					if _, err := c.Write([]byte(text[i : i+1])); err != nil {
						t.Errorf("%s: byte %d: %v", address, i, err)
						return
					}
				}
				_ = c.SetReadDeadline(time.Now().Add(harness.Patience)) // an error shows in the read
				got := make([]byte, len(want))
				if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
					t.Errorf("%q: reply %q, %v", text, got, err)
				}
			})
		}
		all.Wait()
	})
}

// stormRate is how many clients per second connect in the measured storm; without a limit the load program would take
// the CPU time of the bystander and the broker.
const stormRate = 10_000

func TestStormOfConnections(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: it measures memory and time
	b := harness.Start(t, harness.Options{})
	p := newProbe(t, b)
	const storms = 60_000
	for _, storm := range []struct {
		what string
		rate int
	}{{fmt.Sprintf("%d per second", stormRate), stormRate}, {"as fast as they come", math.MaxInt}} {
		begin := time.Now()
		p.during(fmt.Sprintf("%d connects and disconnects, %s", storms, storm.what), 96*mib, func() {
			connectAndClose(t, []string{b.Workq, b.Gearman, b.Faktory}, storms, storm.rate)
		})
		t.Logf("%.0f connects per second", float64(storms)/time.Since(begin).Seconds())
	}
	for _, protocol := range []string{"workq", "gearman", "faktory"} {
		harness.Eventually(t, func() string {
			if n := open(t, b, protocol); n > map[string]int{"gearman": 1}[protocol] { // the bystander stays
				return fmt.Sprintf("%d connections of %s are still open", n, protocol)
			}
			return ""
		})
	}
}

// connectAndClose connects and disconnects often times, at most rate times per second.
func connectAndClose(t *testing.T, addresses []string, often, rate int) {
	const at = 8 // in parallel
	begin := time.Now()
	var all sync.WaitGroup
	for n := range at {
		all.Go(func() { // ends when its share is done
			for i := range often / at {
				time.Sleep(time.Until(begin.Add(time.Duration(float64(i*at) / float64(rate) * float64(time.Second)))))
				c, err := net.DialTimeout("tcp", addresses[(n+i)%len(addresses)], harness.Patience)
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.(*net.TCPConn).SetLinger(0) // a reset frees the port at once
				_ = c.Close()                     // likewise
			}
		})
	}
	all.Wait()
}
