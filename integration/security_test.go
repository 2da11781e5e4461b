package integration_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
)

// signedBy creates a client certificate signed by the authority that selfSigned created.
func signedBy(t *testing.T, certFile, keyFile string) tls.Certificate {
	t.Helper()
	authority, err := tls.LoadX509KeyPair(certFile, keyFile)
	check(t, err)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "client"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, &private.PublicKey, authority.PrivateKey)
	check(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

// hello is a request that each protocol answers at once.
var hello = map[string]string{
	"workq": "lease q 0\r\n", "gearman": "version\n", "faktory": "", "http": "GET /healthz HTTP/1.0\r\n\r\n",
}

// replies reports whether a connection receives a reply.
func replies(c net.Conn, protocol string) bool {
	_ = c.SetDeadline(time.Now().Add(harness.Patience)) // an error shows in the read
	_, _ = io.WriteString(c, hello[protocol])           // likewise
	n, _ := c.Read(make([]byte, 100))
	_ = c.Close() // the reply was read
	return n > 0
}

// servedOver reports whether a client is served over TLS. One that must be served tries a second time: the broker waits
// ten seconds for a handshake, which may be too short on a busy machine.
func servedOver(address, protocol string, config *tls.Config, must bool) (served bool, err error) {
	for range 2 {
		var c net.Conn
		if c, err = tls.Dial("tcp", address, config); err == nil {
			served = replies(c, protocol)
		}
		if served || !must {
			break
		}
	}
	return served, err
}

func addresses(b *harness.Broker) map[string]string {
	return map[string]string{"workq": b.Workq, "gearman": b.Gearman, "faktory": b.Faktory, "http": b.HTTP}
}

func TestEveryProtocolCanDemandClientCertificates(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	cert, key, pool := selfSigned(t)
	otherCert, otherKey, _ := selfSigned(t)
	var settings strings.Builder
	for _, protocol := range []string{"workq", "gearman", "faktory"} {
		fmt.Fprintf(&settings, "[%s]\ntls_cert = %q\ntls_key = %q\ntls_client_ca = %q\n", protocol, cert, key, cert)
	}
	b := harness.Start(t, harness.Options{Config: settings.String()})
	for protocol, address := range addresses(b) {
		if protocol == "http" {
			continue
		}
		for _, test := range []struct {
			what   string
			config *tls.Config
			want   bool
		}{
			{
				"a certificate of the authority", &tls.Config{Certificates: []tls.Certificate{signedBy(t, cert, key)}},
				true,
			},
			{"no certificate", &tls.Config{}, false},
			{
				"a certificate of another authority",
				&tls.Config{Certificates: []tls.Certificate{signedBy(t, otherCert, otherKey)}}, false,
			},
			{
				"TLS 1.1",
				&tls.Config{
					Certificates: []tls.Certificate{signedBy(t, cert, key)}, MinVersion: tls.VersionTLS10,
					MaxVersion: tls.VersionTLS11,
				},
				false,
			},
		} {
			test.config.RootCAs = pool
			got, err := servedOver(address, protocol, test.config, test.want)
			if got != test.want {
				t.Errorf("%s with %s: served: %v (%v)", protocol, test.what, got, err)
			}
		}
		plain, err := net.Dial("tcp", address)
		check(t, err)
		_, err = io.WriteString(plain, hello[protocol]+"\r\n")
		check(t, err)
		check(t, plain.SetDeadline(time.Now().Add(harness.Patience)))
		if text, _ := io.ReadAll(plain); strings.ContainsAny(string(text), "+-O") {
			t.Errorf("%s replies in plain text: %q", protocol, text)
		}
	}
}

func TestAllowListsDenyOtherClients(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	var settings strings.Builder
	for _, protocol := range []string{"workq", "gearman", "faktory"} {
		fmt.Fprintf(&settings, "[%s]\nallow = [\"127.0.0.2\", \"10.0.0.0/8\"]\n", protocol)
	}
	b := harness.Start(t, harness.Options{Config: settings.String()})
	for protocol, address := range addresses(b) {
		for from, want := range map[byte]bool{2: true, 3: protocol == "http"} {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}}
			c, err := d.Dial("tcp", address)
			check(t, err)
			if got := replies(c, protocol); got != want {
				t.Errorf("%s from 127.0.0.%d: served: %v", protocol, from, got)
			}
		}
	}
	for _, protocol := range []string{"workq", "gearman", "faktory"} {
		awaitTexts(t, func() string { return metricsOf(t, b) },
			fmt.Sprintf("broker_denied_connections_total{protocol=%q} 1\n", protocol))
	}
	awaitTexts(t, b.Output, "client denied by allow list")
}

func TestHTTPOverTLSWithAnAllowList(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	cert, key, pool := selfSigned(t)
	b := harness.Prepare(t, harness.Options{
		Password: "s3cret",
		Config:   fmt.Sprintf("[http]\nallow = [\"127.0.0.1\"]\ntls_cert = %q\ntls_key = %q\n", cert, key),
	})
	check(t, b.Spawn())
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true,
	}}
	harness.Eventually(t, func() string {
		resp, err := client.Get("https://" + b.HTTP + "/readyz")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = resp.Body.Close() }() // only the status matters
		if resp.StatusCode != http.StatusOK {
			return resp.Status
		}
		return ""
	})
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	c, err := d.Dial("tcp", b.HTTP)
	check(t, err)
	equal(t, "served from outside of the list", replies(c, "http"), false)
	dir := filepath.Join(t.TempDir(), "copy")
	config := filepath.Join(filepath.Dir(b.Data), "broker.toml")
	r := brokerCommand(t, "backup", "--config", config, "--data", b.Data, "--http", b.HTTP, "--password", "s3cret", dir)
	equal(t, "exit code of backup over TLS: "+r.Stderr, r.Code, 0)
}

func TestChangesNeedThePasswordAndTheSameOrigin(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer s3cret") }
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	none := func(r *http.Request) { r.Header.Del("Authorization") }
	for _, test := range []struct {
		what     string
		password string
		change   func(*http.Request)
		status   int
	}{
		{"as it should be", "s3cret", func(*http.Request) {}, 200},
		{"with a bearer token", "s3cret", bearer, 200},
		{"without the password", "s3cret", none, 401},
		{"with a wrong token", "s3cret", header("Authorization", "Bearer s3cre"), 401},
		{"from a foreign page, with the password", "s3cret", header("Origin", "http://evil.example"), 403},
		{"from a foreign page", "", header("Sec-Fetch-Site", "cross-site"), 403},
		{"from a foreign page by origin", "", header("Origin", "http://evil.example"), 403},
		{"from a page whose name was turned to this host", "", host("evil.example:7420"), 403},
		{"by number", "", func(*http.Request) {}, 200},
		{"as localhost", "", host("localhost:7420"), 200},
		{"by any name, with the password", "s3cret", host("broker.internal"), 200},
	} {
		b := harness.Start(t, harness.Options{Password: test.password, Durability: "none"})
		status, answer := post(t, b, "/api/v1/resume", "", test.change)
		if status != test.status {
			t.Errorf("%s: %d %s, want %d", test.what, status, answer, test.status)
		}
		b.Crash()
	}
}

func TestNoSecretIsWrittenAnywhere(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	secret := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(secret, []byte("t0p-s3cret\n"), 0o600))
	b := harness.Start(t, harness.Options{
		Config: fmt.Sprintf(
			"[log]\nlevel = \"debug\"\n[faktory]\npassword = \"w0rd-s3cret\"\n[http]\nprofiling = true\npassword = %q\n",
			secret),
	})
	b.Password = "w0rd-s3cret" // of Faktory's clients
	fkt := dialFaktory(t, b)
	check(t, fkt.Push(fktJob("secret", "p4yload-s3cret")))
	wrong, err := net.Dial("tcp", b.Faktory)
	check(t, err)
	_, err = io.WriteString(wrong, "HELLO {\"v\":2,\"pwdhash\":\"w0rd-s3cret\"}\r\n")
	check(t, err)
	check(t, wrong.Close())
	authorized := func(r *http.Request) { r.SetBasicAuth("", "t0p-s3cret") }
	status, _ := post(t, b, "/api/v1/drain", "{\"token\": \"t0p-s3cret\"", authorized)
	equal(t, "a broken order", status, http.StatusBadRequest)
	status, _ = post(t, b, "/api/v1/resume", "", authorized)
	equal(t, "a good order", status, http.StatusOK)
	get := func(path string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.HTTP+path, nil)
		check(t, err)
		authorized(req)
		resp, err := http.DefaultClient.Do(req)
		check(t, err)
		defer func() { _ = resp.Body.Close() }() // it was read
		text, err := io.ReadAll(resp.Body)
		check(t, err)
		equal(t, path, resp.StatusCode, http.StatusOK)
		return string(text)
	}
	r := brokerCommand(t, "check-config", "--config", filepath.Join(filepath.Dir(b.Data), "broker.toml"), "--password",
		"w0rd-s3cret")
	bad := brokerCommand(t, "serve", "--data", "", "--password", "w0rd-s3cret", "--workq", "nonsense")
	equal(t, "exit code with invalid settings", bad.Code, 1)
	for what, text := range map[string]string{
		"/metrics": get("/metrics"), "/stats": get("/stats"), "/readyz": get("/readyz"), "/healthz": get("/healthz"),
		"profiles": get("/debug/pprof/heap?debug=1") + get("/debug/pprof/goroutine?debug=2") + get("/debug/pprof/"),
		"the log":  b.Output(), "check-config": r.Stdout + r.Stderr, "refused settings": bad.Stdout + bad.Stderr,
	} {
		if i := strings.Index(text, "s3cret"); i >= 0 {
			t.Errorf("%s contains a secret: …%s", what, text[max(0, i-100):i+6])
		}
	}
}
