//go:build nightly

package torture_test

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// slowestProbe limits the p99 latency of the bystander. It is long because the load program shares two processors with
// the broker; the actual value is logged.
const slowestProbe = 3 * time.Second

// probe measures the effect of an overload: a bystander, which is a well-behaved client, submits jobs and measures the
// latency. The bystander is a process of its own: in the load program its goroutine would have to wait for the others.
type probe struct {
	t testing.TB
	b *harness.Broker

	bystander *harness.Child
	lines     int // lines that it has printed

	idle  time.Duration // p99 before the overload
	bytes int64         // resident memory before the overload
}

// newProbe measures the idle broker.
func newProbe(t testing.TB, b *harness.Broker) *probe {
	t.Helper()
	syscall.Sync() // earlier tests must not cause I/O during this one
	self, err := os.Executable()
	check(t, err)
	p := &probe{t: t, b: b, bystander: harness.Spawn(t, harness.Command{
		Argv: []string{self}, Env: []string{bystanderOf + "=" + b.Gearman},
	})}
	p.nextLine()
	p.toggle()
	time.Sleep(time.Second)
	p.idle = p.result()
	p.bytes, err = server.ResidentBytes(b.PID())
	check(t, err)
	return p
}

// toggle lets the bystander start or stop measuring and returns its reply.
func (p *probe) toggle() string {
	p.t.Helper()
	check(p.t, p.bystander.Signal(syscall.SIGUSR1))
	return p.nextLine()
}

// nextLine waits for the bystander's next line.
func (p *probe) nextLine() string {
	p.t.Helper()
	p.lines++
	return p.bystander.AwaitLines(p.lines, func(string) bool { return true })[p.lines-1]
}

// result stops measuring and returns the p99 latency.
func (p *probe) result() time.Duration {
	p.t.Helper()
	p99, err := time.ParseDuration(p.toggle())
	check(p.t, err)
	return p99
}

// bystanderOf is the environment variable that makes this program a bystander of the broker at that address.
const bystanderOf = "TORTURE_BYSTANDER_OF"

// runBystander runs the bystander until it is killed. It connects before the overload, because busy loops delay new
// connections. A signal starts a measurement, the next one ends it. It replies to each with a line; the second one is
// the p99 latency.
func runBystander(address string) error {
	c, err := gearmanclient.Dial(address)
	if err != nil {
		return err
	}
	orders := make(chan os.Signal, 1)
	signal.Notify(orders, syscall.SIGUSR1)
	fmt.Println("ready")
	for {
		<-orders
		fmt.Println("measuring")
		p99, err := measure(c, orders)
		if err != nil {
			return err
		}
		fmt.Println(p99)
	}
}

// measure submits jobs until end and returns the p99 latency.
func measure(c *gearmanclient.Client, end <-chan os.Signal) (time.Duration, error) {
	var took []time.Duration
	for {
		select {
		case <-end:
			slices.Sort(took)
			return took[len(took)*99/100], nil
		case <-time.After(5 * time.Millisecond):
		}
		begin := time.Now()
		if _, err := c.Submit(gearmanclient.SubmitJobBg, "bystander", "", "x"); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begin))
	}
}

// during runs an overload, and checks the bystander's latency and the broker's memory.
func (p *probe) during(what string, most int64, overload func()) {
	p.t.Helper()
	p.toggle()
	time.Sleep(100 * time.Millisecond)
	overload()
	p99 := p.result()
	bytes, err := server.ResidentBytes(p.b.PID())
	check(p.t, err)
	grown := bytes - p.bytes
	p.t.Logf("%s: memory %+d MiB (to %d MiB); p99 of a bystander's submission %v, idle %v", what, grown>>20, bytes>>20,
		p99.Round(100*time.Microsecond), p.idle.Round(100*time.Microsecond))
	if grown > most {
		p.t.Errorf("%s: %d MiB of memory, more than %d", what, grown>>20, most>>20)
	}
	if p99 > slowestProbe {
		p.t.Errorf("%s: the p99 latency of a bystander is %v", what, p99)
	}
}

// open is the number of open connections of a protocol according to the metrics.
func open(t testing.TB, b *harness.Broker, protocol string) int {
	t.Helper()
	return metric(t, b, fmt.Sprintf("broker_connections{protocol=%q}", protocol))
}
