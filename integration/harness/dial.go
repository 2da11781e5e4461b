package harness

import (
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/workqclient"
)

// DialGearman opens a connection for the duration of the test.
func DialGearman(t testing.TB, b *Broker) *gearmanclient.Client {
	t.Helper()
	c, err := gearmanclient.Dial(b.Gearman)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it may be gone
	return c
}

// DialWorkq opens a connection for the duration of the test. Only the broker speaks Workq.
func DialWorkq(t testing.TB, b *Broker) *workqclient.Client {
	t.Helper()
	BrokerOnly(t)
	c, err := workqclient.Dial(b.Workq)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it may be gone
	return c
}

// OpenFaktory connects the official client; timeout applies to each of its calls.
func OpenFaktory(b *Broker, timeout time.Duration) (*faktory.Client, error) {
	s := faktory.DefaultServer()
	s.Address, s.Password, s.Timeout = b.Faktory, b.Password, timeout
	return s.Open()
}
