package integration_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// protocols are the names of the four ports.
var protocols = []string{"workq", "gearman", "faktory", "http"}

// startEncrypted starts a broker with TLS on every port; clientCA may be empty.
func startEncrypted(t *testing.T, cert, key, clientCA string) *harness.Broker {
	t.Helper()
	var settings strings.Builder
	for _, protocol := range protocols {
		fmt.Fprintf(&settings, "[%s]\ntls_cert = %q\ntls_key = %q\n", protocol, cert, key)
		if clientCA != "" {
			fmt.Fprintf(&settings, "tls_client_ca = %q\n", clientCA)
		}
	}
	b := harness.Prepare(t, harness.Options{Config: settings.String()})
	check(t, b.Spawn())
	awaitReady(t, b.Process, 0)
	return b
}

// awaitReady is what a broker has logged, from an offset, when it has said that it is ready: clients are served a
// moment earlier.
func awaitReady(t *testing.T, p *server.Process, from int) (log string) {
	t.Helper()
	harness.Eventually(t, func() string {
		if p.Exited() {
			t.Fatalf("exited: %s", p.Tail())
		}
		if log = p.Output()[from:]; !strings.Contains(log, `"message":"ready"`) {
			return "not ready: " + p.Tail()
		}
		return ""
	})
	return log
}

func TestEveryPortAcceptsTLS12AndRefusesOlderVersions(t *testing.T) {
	t.Parallel()
	cert, key, pool := selfSigned(t)
	b := startEncrypted(t, cert, key, "")
	for protocol, address := range addresses(b) {
		for _, test := range []struct {
			version uint16
			served  bool
		}{{tls.VersionTLS10, false}, {tls.VersionTLS11, false}, {tls.VersionTLS12, true}, {tls.VersionTLS13, true}} {
			got, err := servedOver(address, protocol, &tls.Config{
				RootCAs: pool, MinVersion: test.version, MaxVersion: test.version,
			}, test.served)
			if got != test.served {
				t.Errorf("%s over %s: served: %v (%v)", protocol, tls.VersionName(test.version), got, err)
			}
		}
	}
}

func TestHTTPCanDemandClientCertificates(t *testing.T) {
	t.Parallel()
	cert, key, pool := selfSigned(t)
	otherCert, otherKey, _ := selfSigned(t)
	b := startEncrypted(t, cert, key, cert)
	for what, config := range map[string]*tls.Config{
		"a certificate of the authority":     {Certificates: []tls.Certificate{signedBy(t, cert, key)}},
		"no certificate":                     {},
		"a certificate of another authority": {Certificates: []tls.Certificate{signedBy(t, otherCert, otherKey)}},
	} {
		config.RootCAs = pool
		want := what == "a certificate of the authority"
		got, err := servedOver(b.HTTP, "http", config, want)
		if got != want {
			t.Errorf("with %s: served: %v (%v)", what, got, err)
		}
	}
}

// A TLS port answers plain text only with TLS records, which start with the byte 0x15 or 0x16.
func TestPlainTextIsNotAnsweredWhereTLSIsSet(t *testing.T) {
	t.Parallel()
	cert, key, _ := selfSigned(t)
	b := startEncrypted(t, cert, key, "")
	for protocol, address := range addresses(b) {
		if protocol == "http" {
			continue // net/http replies only that the request is not TLS
		}
		c, err := net.Dial("tcp", address)
		check(t, err)
		_, err = io.WriteString(c, hello[protocol]+"HELLO {}\r\n")
		check(t, err)
		check(t, c.SetDeadline(time.Now().Add(harness.Patience)))
		if text, _ := io.ReadAll(c); len(text) > 0 && text[0] != 0x15 {
			t.Errorf("%s replies %q", protocol, text)
		}
		check(t, c.Close())
	}
}

// A client that uses TLS on a port without it is not kept waiting, and the log says what it did.
func TestTLSOnPortsWithoutItEndsTheConnection(t *testing.T) {
	t.Parallel()
	b, optional := startOptionalPorts(t, "", "")
	ports := addresses(b)
	maps.Copy(ports, optional)
	for name, address := range ports {
		c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
		if err == nil {
			t.Errorf("%s speaks TLS", name)
			_ = c.Close() // nothing was sent
		}
		harness.Eventually(t, func() string {
			for line := range strings.Lines(b.Output()) {
				if strings.Contains(line, "the client uses tls on a port without tls") &&
					strings.Contains(line, fmt.Sprintf("%q:%q", "frontend", name)) {
					return ""
				}
			}
			return "no log line of " + name
		})
	}
}

func TestUnixSocketsHaveTheRightsOfTheUmask(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for umask, want := range map[string]os.FileMode{"077": 0o700, "007": 0o770} {
		dir, err := os.MkdirTemp("", "brk") // socket paths must be short
		check(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		argv := []string{
			"sh", "-c", "umask " + umask + `; exec "$0" "$@"`, harness.Binary(t), "serve", "--data", t.TempDir(),
		}
		for _, protocol := range protocols {
			argv = append(argv, "--"+protocol, "unix:"+filepath.Join(dir, protocol))
		}
		child := harness.Spawn(t, harness.Command{Argv: argv})
		awaitReady(t, child.Process, 0)
		for _, protocol := range protocols {
			info, err := os.Stat(filepath.Join(dir, protocol))
			check(t, err)
			equal(t, "rights of "+protocol, info.Mode().Perm(), want)
		}
		equal(t, "sockets with an address", len(socketsOf(t, child.PID())), 0)
		child.Kill()
	}
}

// Anybody can cause failed handshakes: they must not write to the log.
func TestFailedHandshakesDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	cert, key, _ := selfSigned(t)
	b := startEncrypted(t, cert, key, "")
	before := b.Output()
	for _, address := range addresses(b) {
		for range 5 {
			s := dialRawConn(t, address)
			s.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n\r\n")
			s.cutOff()
		}
	}
	code, _ := b.Terminate()
	equal(t, "exit code", code, 0)
	for line := range strings.Lines(b.Output()[len(before):]) {
		if !strings.HasPrefix(line, "{") || !strings.Contains(line, `"level":"info"`) {
			t.Errorf("logged: %s", line)
		}
	}
}
