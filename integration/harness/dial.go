package harness

import (
	"errors"
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

// greetFor is how long a Faktory server waits for the HELLO of a client.
const greetFor = 2 * time.Second

// OpenFaktory connects the official client; it may take that long to connect. If the machine is so busy that the server
// does not wait for the HELLO, it tries again.
func OpenFaktory(b *Broker, timeout time.Duration) (c *faktory.Client, err error) {
	s := faktory.DefaultServer()
	s.Address, s.Password, s.Timeout = b.Faktory, b.Password, timeout
	refused := (*faktory.ProtocolError)(nil)
	for late, end := true, time.Now().Add(timeout); late && time.Now().Before(end); {
		begin := time.Now()
		c, err = s.Open()
		late = err != nil && !errors.As(err, &refused) && time.Since(begin) >= greetFor
	}
	return c, err
}
