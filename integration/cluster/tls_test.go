package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
)

// authority signs certificates of nodes.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	a.key = key
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	a.cert, err = x509.ParseCertificate(der)
	check(t, err)
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	check(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// node makes a certificate and returns the settings that use it.
func (a *authority) node() string {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(a.t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, NotAfter: time.Now().Add(time.Hour),
	}, a.cert, &key.PublicKey, a.key)
	check(a.t, err)
	text, err := x509.MarshalECPrivateKey(key)
	check(a.t, err)
	return fmt.Sprintf("[cluster]\ntls_cert = %q\ntls_key = %q\ntls_ca = %q\n", a.write("node.pem", "CERTIFICATE", der),
		a.write("node.key", "EC PRIVATE KEY", text), filepath.Join(a.dir, "ca.pem"))
}

// With certificates between the nodes, clients are served through all of them; a node of another authority is not let
// in.
func TestNodesKnowEachOtherByCertificate(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, newAuthority(t).node()).start()
	l := c.begin()
	time.Sleep(500 * time.Millisecond)
	i := c.leader()
	if code := terminate(t, c.nodes[i]); code != 0 {
		t.Errorf("exit code %d", code)
	}
	time.Sleep(500 * time.Millisecond)
	c.restart(i)
	l.finish(t)

	i = c.follower()
	if code := terminate(t, c.nodes[i]); code != 0 {
		t.Errorf("exit code %d", code)
	}
	stranger := c.node(t.TempDir(), i, newAuthority(t).node(), nil)
	stranger.Data = c.nodes[i].Data
	check(t, stranger.Spawn())
	harness.Eventually(t, func() string {
		if out := stranger.Output(); !strings.Contains(out, "certificate") {
			return "it does not say why it is not let in: " + out
		}
		return ""
	})
	harness.Eventually(t, func() string { // it listens a moment later
		status, body, err := stranger.Get("/readyz")
		if err != nil {
			return err.Error()
		}
		if status == 200 {
			t.Errorf("a node with a certificate of another authority is ready: %s", body)
		}
		return ""
	})
}
