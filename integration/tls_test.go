package integration_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"testing"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
	"broker/integration/server"
)

// selfSigned writes a certificate for the loopback address and its key, and returns the pool that trusts it.
func selfSigned(t *testing.T) (cert, key string, pool *x509.CertPool) {
	return certificateOf(t, "broker")
}

// certificateOf is selfSigned for a name, which may be that of a client.
func certificateOf(t *testing.T, name string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	cert, key, err := server.Certificate(t.TempDir(), name)
	check(t, err)
	certPEM, err := os.ReadFile(cert)
	check(t, err)
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return cert, key, pool
}

func TestFaktoryOverTLSWithAPassword(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	cert, key, pool := selfSigned(t)
	b := harness.Start(t, harness.Options{
		Password: "secret", Config: fmt.Sprintf("[faktory]\ntls_cert = %q\ntls_key = %q\n", cert, key),
	})
	s := faktory.DefaultServer()
	s.Network, s.Address, s.Password, s.Timeout = "tcp+tls", b.Faktory, b.Password, harness.Patience
	s.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	c, err := s.Open()
	check(t, err)
	defer func() { _ = c.Close() }() // every reply was read
	for i := range 50 {
		check(t, c.Push(fktJob("encrypted", i)))
	}
	for i := range 50 {
		job := fetchSoon(t, c, "encrypted")
		equal(t, "args", fmt.Sprint(job.Args), fmt.Sprintf("[%d]", i))
		check(t, c.Ack(job.Jid))
	}
	s.Network = "tcp"
	if plain, err := s.Open(); err == nil {
		_ = plain.Close() // it should have failed
		t.Error("the port accepts connections without TLS")
	}
	// The other ports do not use TLS.
	wq := harness.DialWorkq(t, b)
	check(t, wq.Add(wqJob("encrypted", "x")))
	fetchSoon(t, c, "encrypted")
}
