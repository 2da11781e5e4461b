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

// slowestProbe is how long a bystander may ever wait. It is long because the program that makes the load has the same two
// processors as the broker; what it really was is printed.
const slowestProbe = 3 * time.Second

// probe is a well-behaved client among others that are not: it submits jobs and notes how long each took. It is a program
// of its own: in the one that makes the load it would wait for that one's goroutines, and take them for the broker.
type probe struct {
	t testing.TB
	b *harness.Broker

	bystander *harness.Child
	told      int // lines it has printed

	idle  time.Duration // 99th percentile before
	bytes int64         // resident before
}

// newProbe measures the broker while nothing else happens.
func newProbe(t testing.TB, b *harness.Broker) *probe {
	t.Helper()
	syscall.Sync() // what earlier tests wrote and removed costs this one nothing
	self, err := os.Executable()
	check(t, err)
	p := &probe{t: t, b: b, bystander: harness.Spawn(t, harness.Command{
		Argv: []string{self}, Env: []string{bystanderOf + "=" + b.Gearman},
	})}
	p.hear()
	p.order()
	time.Sleep(time.Second)
	p.idle = p.result()
	p.bytes, err = server.ResidentBytes(b.PID())
	check(t, err)
	return p
}

// order has the bystander begin, or end, to measure, and answers what it says to that.
func (p *probe) order() string {
	p.t.Helper()
	check(p.t, p.bystander.Signal(syscall.SIGUSR1))
	return p.hear()
}

// hear waits for the bystander's next line.
func (p *probe) hear() string {
	p.t.Helper()
	p.told++
	return p.bystander.AwaitLines(p.told, func(string) bool { return true })[p.told-1]
}

// result ends the measuring and answers the 99th percentile.
func (p *probe) result() time.Duration {
	p.t.Helper()
	p99, err := time.ParseDuration(p.order())
	check(p.t, err)
	return p99
}

// bystanderOf is the variable with the address of the broker that this program is to be a bystander of.
const bystanderOf = "TORTURE_BYSTANDER_OF"

// standBy is the bystander, until it is killed. It is connected, and says so, before the others come: while the loops are
// busy, new connections wait for their turn. A signal begins a measurement, the next one ends it. Each is answered by a line,
// the second by the 99th percentile.
func standBy(address string) error {
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

// measure answers the 99th percentile of the round trips of a job's submission until the end.
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

// during runs an overload, and says what a bystander and the memory felt of it.
func (p *probe) during(what string, most int64, overload func()) {
	p.t.Helper()
	p.order()
	time.Sleep(100 * time.Millisecond)
	overload()
	p99 := p.result()
	bytes, err := server.ResidentBytes(p.b.PID())
	check(p.t, err)
	grown := bytes - p.bytes
	p.t.Logf("%s: memory %+d MiB (to %d MiB); p99 of a bystander's submission %v, idle %v", what, grown>>20, bytes>>20,
		p99.Round(100*time.Microsecond), p.idle.Round(100*time.Microsecond))
	if grown > most {
		p.t.Errorf("%s cost %d MiB of memory, more than %d", what, grown>>20, most>>20)
	}
	if p99 > slowestProbe {
		p.t.Errorf("%s: a bystander waited %v", what, p99)
	}
}

// open is the number of open connections of a protocol as the metrics tell it.
func open(t testing.TB, b *harness.Broker, protocol string) int {
	t.Helper()
	return metric(t, b, fmt.Sprintf("broker_connections{protocol=%q}", protocol))
}
