package torture_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// slowestProbe is how long a bystander may ever wait. It is long because the program that makes the load has the same two
// processors as the broker; what it really was is printed.
const slowestProbe = 3 * time.Second

// probe is a well-behaved client among others that are not: it submits jobs and notes how long each took.
type probe struct {
	t testing.TB
	b *harness.Broker

	client *gearmanclient.Client // there before the others: while the loops are busy, new connections wait for their turn
	idle   time.Duration         // 99th percentile before
	bytes  int64                 // resident before
}

// newProbe measures the broker while nothing else happens.
func newProbe(t testing.TB, b *harness.Broker) *probe {
	t.Helper()
	p := &probe{t: t, b: b, client: harness.DialGearman(t, b)}
	p.idle = p.measure(time.After(time.Second))
	var err error
	p.bytes, err = server.ResidentBytes(b.PID())
	check(t, err)
	return p
}

// measure answers the 99th percentile of the round trips of a job's submission until the end.
func (p *probe) measure(end <-chan time.Time) time.Duration {
	c := p.client
	var took []time.Duration
	for {
		select {
		case <-end:
			slices.Sort(took)
			return took[len(took)*99/100]
		case <-time.After(5 * time.Millisecond):
		}
		begin := time.Now()
		if _, err := c.Submit(gearmanclient.SubmitJobBg, "bystander", "", "x"); err != nil {
			p.t.Errorf("the bystander: %v", err)
			return 0
		}
		took = append(took, time.Since(begin))
	}
}

// during runs an overload, and says what a bystander and the memory felt of it.
func (p *probe) during(what string, most int64, overload func()) {
	p.t.Helper()
	end := make(chan time.Time)
	busy := make(chan time.Duration, 1)
	go func() { busy <- p.measure(end) }() // ends with end, below
	time.Sleep(100 * time.Millisecond)
	overload()
	close(end)
	p99 := <-busy
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
