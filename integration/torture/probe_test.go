package torture_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
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

	orders io.Writer
	told   *bufio.Scanner

	idle  time.Duration // 99th percentile before
	bytes int64         // resident before
}

// newProbe measures the broker while nothing else happens.
func newProbe(t testing.TB, b *harness.Broker) *probe {
	t.Helper()
	syscall.Sync() // what earlier tests wrote and removed costs this one nothing
	self, err := os.Executable()
	check(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), bystanderOf+"="+b.Gearman)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close() // it ends then
		if err := cmd.Wait(); err != nil {
			t.Errorf("the bystander: %v", err)
		}
	})
	p := &probe{t: t, b: b, orders: in, told: bufio.NewScanner(out)}
	p.order()
	time.Sleep(time.Second)
	p.idle = p.result()
	p.bytes, err = server.ResidentBytes(b.PID())
	check(t, err)
	return p
}

// order has the bystander begin, or end, to measure.
func (p *probe) order() {
	p.t.Helper()
	_, err := io.WriteString(p.orders, "\n")
	check(p.t, err)
}

// result ends the measuring and answers the 99th percentile.
func (p *probe) result() time.Duration {
	p.t.Helper()
	p.order()
	if !p.told.Scan() {
		p.t.Fatalf("the bystander says nothing: %v", p.told.Err())
	}
	p99, err := time.ParseDuration(p.told.Text())
	check(p.t, err)
	return p99
}

// bystanderOf is the variable with the address of the broker that this program is to be a bystander of.
const bystanderOf = "TORTURE_BYSTANDER_OF"

// standBy is the bystander. It is connected before the others come: while the loops are busy, new connections wait for
// their turn. A line begins a measurement, the next one ends it and is answered with its 99th percentile.
func standBy(address string) error {
	c, err := gearmanclient.Dial(address)
	if err != nil {
		return err
	}
	orders := make(chan struct{})
	go func() { // ends with the test
		defer close(orders)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			orders <- struct{}{}
		}
	}()
	for range orders {
		p99, err := measure(c, orders)
		if err != nil {
			return err
		}
		fmt.Println(p99)
	}
	return c.Close()
}

// measure answers the 99th percentile of the round trips of a job's submission until the end.
func measure(c *gearmanclient.Client, end <-chan struct{}) (time.Duration, error) {
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
