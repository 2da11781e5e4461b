package integration_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

// tlsProxy accepts TLS in front of a server, which is at HOST:PORT or unix:PATH.
func tlsProxy(t *testing.T, pair *tls.Certificate, behind string) (address string) {
	t.Helper()
	network := "tcp"
	if path, is := strings.CutPrefix(behind, "unix:"); is {
		network, behind = "unix", path
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{*pair}, MinVersion: tls.VersionTLS12})
	check(t, err)
	t.Cleanup(func() { _ = l.Close() }) // ends the loop below
	go func() {                         // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial(network, behind)
			if err != nil {
				_ = c.Close() // the client sees it
				continue
			}
			for from, to := range map[net.Conn]net.Conn{c: s, s: c} {
				go func() { // ends with either connection
					_, _ = io.Copy(to, from)
					_, _ = from.Close(), to.Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

func TestImportOverTLS(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	dir := t.TempDir()
	cert, key, err := server.Certificate(dir, "source")
	check(t, err)
	pair, err := tls.LoadX509KeyPair(cert, key)
	check(t, err)
	for i, scheme := range map[int]string{0: "tls", 1: "tcp+tls", 2: "rediss", 4: "tls"} {
		s := importSources[i]
		t.Run(fmt.Sprint(s.name, " at ", scheme), func(t *testing.T) {
			t.Parallel()
			b := harness.Start(t, harness.Options{})
			address, to := s.start(t, b)
			s.fill(t, address, 3)
			flags := []string{"--tls-ca", cert}
			if len(to) > 0 {
				flags = append(flags, "--to", "tcp+tls://"+tlsProxy(t, &pair, to[1]))
			}
			r := runImport(t, b, s.name, scheme+"://"+tlsProxy(t, &pair, address), flags...)
			equal(t, "moved", r.Moved, 3)
		})
	}
}
