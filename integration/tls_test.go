package integration_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

// selfSigned writes a certificate for the loopback address and its key, and returns the pool that trusts it.
func selfSigned(t *testing.T) (cert, key string, pool *x509.CertPool) {
	return certificateOf(t, "broker")
}

// certificateOf is selfSigned for a name, which may be that of a client.
func certificateOf(t *testing.T, name string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	check(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	check(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	check(t, os.WriteFile(cert, certPEM, 0o600))
	check(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
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
	if plain, err := harness.OpenFaktory(b, harness.Patience); err == nil {
		_ = plain.Close() // it should have failed
		t.Error("the port accepts connections without TLS")
	}
	// The other ports do not use TLS.
	wq := harness.DialWorkq(t, b)
	check(t, wq.Add(wqJob("encrypted", "x")))
	fetchSoon(t, c, "encrypted")
}
