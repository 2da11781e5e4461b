package cli

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// authorityOf writes the certificate of a server as a file of its authority.
func authorityOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandsTrustTheAuthorityThatIsNamed(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"title":"Unauthorized","status":401,"detail":"a password or token is required"}`))
			return
		}
		_, _ = w.Write([]byte(`{}`))
	})
	secure, plain := httptest.NewTLSServer(answer), httptest.NewServer(answer)
	strict := httptest.NewUnstartedServer(answer)
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	strict.StartTLS()
	for _, s := range []*httptest.Server{secure, plain, strict} {
		s.Config.ErrorLog = nil
		t.Cleanup(s.Close)
	}
	for name, c := range map[string]struct {
		conn connection
		code int
		says string
	}{
		"trusted": {
			connection{server: secure.URL, token: "secret", tls: tlsFiles{CA: authorityOf(t, secure)}}, ExitOK, "",
		},
		"not trusted":    {connection{server: secure.URL}, ExitFailed, "is not trusted"},
		"names the flag": {connection{server: secure.URL}, ExitFailed, "--tls-ca"},
		"no TLS": {
			connection{server: strings.Replace(plain.URL, "http:", "https:", 1)}, ExitFailed, "does not speak TLS",
		},
		"no certificate": {
			connection{server: strict.URL, tls: tlsFiles{CA: authorityOf(t, strict)}}, ExitDenied, "--tls-cert",
		},
		"no token":       {connection{server: plain.URL}, ExitDenied, "token is required; name it with --token"},
		"files for http": {connection{server: plain.URL, tls: tlsFiles{CA: "x"}}, ExitUsage, "are for https"},
		"key alone":      {connection{server: secure.URL, tls: tlsFiles{Key: "x"}}, ExitUsage, "needs --tls-cert"},
		"no such file":   {connection{server: secure.URL, tls: tlsFiles{CA: "/nowhere"}}, ExitFailed, "/nowhere"},
		"nobody answers": {connection{server: "https://127.0.0.1:1"}, ExitUnreachable, "no broker answers"},
	} {
		client, err := c.conn.open()
		if err == nil {
			_, err = client.call(t.Context(), http.MethodGet, "queues", nil, nil, nil)
		}
		if Code(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: code %d, %v", name, Code(err), err)
		}
	}
}
