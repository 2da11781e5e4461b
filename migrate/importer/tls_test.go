package importer

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// secured serves TLS with a certificate of its own, and greets clients that trust it.
func secured(t *testing.T, greeting string) (address string, trusts *tls.Config) {
	t.Helper()
	web := httptest.NewUnstartedServer(nil) // only for its certificate
	web.StartTLS()
	t.Cleanup(web.Close)
	l, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	address = answer(t, l, func(c net.Conn) {
		_, _ = io.WriteString(c, greeting)
		_, _ = io.Copy(io.Discard, c)
	})
	return address, web.Client().Transport.(*http.Transport).TLSClientConfig
}

func TestAddressesMayAskForTLS(t *testing.T) {
	t.Parallel()
	address, trusts := secured(t, "hello\n")
	for _, scheme := range []string{"tcp+tls", "tls", "rediss", "TCP+TLS"} {
		s := &Servers{Source: scheme + "://:password@" + address, TLS: trusts}
		conn, u, err := s.dial(s.Source, GearmanPort)
		if err != nil {
			t.Errorf("%s: %v", scheme, err)
			continue
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if password, _ := u.User.Password(); err != nil || line != "hello\n" || password != "password" || !s.UseTLS() {
			t.Errorf("%s: %q, %v, password %q", scheme, line, err, password)
		}
		_ = conn.Close() // it was read
	}
	s := new(Servers)
	if _, _, err := s.dial("tcp+tls://"+address, GearmanPort); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody trusts: %v", err)
	}
	if s := (&Servers{Source: "redis://" + address, Target: address}); s.UseTLS() {
		t.Error("addresses without TLS ask for it")
	}
}
