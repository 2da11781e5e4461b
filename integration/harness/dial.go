package harness

import (
	"errors"
	"net"
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

// GreetFor is how long a Faktory server waits for the HELLO of a client.
const GreetFor = 2 * time.Second

// OpenFaktory connects the official client; timeout applies to each of its calls. If the machine is so busy that the
// server does not wait for the HELLO, it tries again.
func OpenFaktory(b *Broker, timeout time.Duration) (c *faktory.Client, err error) {
	s := faktory.DefaultServer()
	s.Address, s.Password = b.Faktory, b.Password
	refused := (*faktory.ProtocolError)(nil)
	for late, end := true, time.Now().Add(timeout); late && time.Now().Before(end); {
		begin := time.Now()
		c, err = s.OpenWithDialer(patientDialer(timeout))
		late = err != nil && !errors.As(err, &refused) && time.Since(begin) >= GreetFor
	}
	return c, err
}

// patientDialer makes connections for the official Faktory client, which gives a reply up after five seconds: a busy
// machine may not get to answer within them.
type patientDialer time.Duration

// Dial implements faktory.Dialer.
func (d patientDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, time.Duration(d))
	if err != nil {
		return nil, err
	}
	return &patientConn{conn, time.Duration(d)}, nil
}

// patientConn waits longer than it is told.
type patientConn struct {
	net.Conn
	timeout time.Duration
}

// SetReadDeadline implements net.Conn.
func (c *patientConn) SetReadDeadline(time.Time) error {
	return c.Conn.SetReadDeadline(time.Now().Add(c.timeout))
}

// SetWriteDeadline implements net.Conn.
func (c *patientConn) SetWriteDeadline(time.Time) error {
	return c.Conn.SetWriteDeadline(time.Now().Add(c.timeout))
}
