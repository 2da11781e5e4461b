package harness

import (
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/workqclient"
)

// DialGearman opens a connection that lasts as long as the test.
func DialGearman(t testing.TB, b *Broker) *gearmanclient.Client {
	t.Helper()
	c, err := gearmanclient.Dial(b.Gearman)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it may be gone
	return c
}

// DialWorkq opens a connection that lasts as long as the test, which is for our broker only.
func DialWorkq(t testing.TB, b *Broker) *workqclient.Client {
	t.Helper()
	OursOnly(t)
	c, err := workqclient.Dial(b.Workq)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it may be gone
	return c
}

// OpenFaktory connects the published client; timeout is for each of its calls.
func OpenFaktory(b *Broker, timeout time.Duration) (*faktory.Client, error) {
	s := faktory.DefaultServer()
	s.Address, s.Password, s.Timeout = b.Faktory, b.Password, timeout
	return s.Open()
}
