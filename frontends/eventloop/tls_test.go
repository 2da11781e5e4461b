package eventloop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// keys creates certificates for 127.0.0.1 and trusts them.
type keys struct {
	next   int64
	roots  *x509.CertPool
	config atomic.Pointer[tls.Config]

	// Settings of clients. Zero values: they resume no session and accept any version.
	sessions tls.ClientSessionCache
	version  uint16
}

func newKeys(t *testing.T) *keys {
	t.Helper()
	k := &keys{roots: x509.NewCertPool()}
	k.renew(t)
	return k
}

// renew creates a new certificate, which the server uses from now on.
func (k *keys) renew(t *testing.T) {
	t.Helper()
	k.next++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(k.next), Subject: pkix.Name{CommonName: "toy"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := k.roots.Clone()
	roots.AddCert(cert)
	k.roots = roots
	k.config.Store(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
}

// server is a TLS setting of the fixture.
func (k *keys) server(_ *fixture, _ *Options, l *Listener) { l.TLS = k.config.Load }

func (k *keys) dial(t *testing.T, f *fixture) *client {
	t.Helper()
	tc, err := tls.DialWithDialer(dialer(nil), "tcp", f.Addrs()[0].String(), &tls.Config{
		RootCAs: k.roots, ClientSessionCache: k.sessions, MaxVersion: k.version,
	})
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, tc)
}

func (k *keys) serial(c *client) string {
	return c.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// Clients that reconnect resume their TLS session. After the certificates have been replaced they cannot, so that the
// server checks their certificates again.
func TestTLSSessionsAreResumed(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		keys := newKeys(t)
		keys.sessions, keys.version = tls.NewLRUClientSessionCache(0), version
		f := setup(t, keys.server)
		resumed := func() bool {
			c := keys.dial(t, f)
			c.send("echo x\n")
			c.want("x") // a ticket of TLS 1.3 comes with the first answer
			_ = c.Close()
			return c.Conn.(*tls.Conn).ConnectionState().DidResume
		}
		for i, want := range []bool{false, true, true} {
			if got := resumed(); got != want {
				t.Errorf("version %x, connection %d: resumed %v, want %v", version, i, got, want)
			}
		}
		keys.renew(t)
		if resumed() {
			t.Errorf("version %x: resumed although the certificate was replaced", version)
		}
	}
}
