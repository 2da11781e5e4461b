package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"broker/integration/server"
)

// tlsName is the broker with clients over TLS. A process between the load program and the broker encrypts. Its
// processor time counts neither as the broker's nor as the load's.
const tlsName = "broker none, tls"

// tunnelEnv makes a child process the one that encrypts. Its value has the address to listen on, the address of the
// server, and the file of the server's certificate.
const tunnelEnv = "BENCH_TUNNEL"

// limitTLSName is the limit server with the TLS of Go's standard library, one goroutine for each connection: what a
// server in Go can reach that encrypts.
const limitTLSName = "limit, tls"

// limitTLSEnv makes a child process that server. Its value has the address to listen on, and the files of the
// certificate and its key.
const limitTLSEnv = "BENCH_LIMIT_TLS"

// tlsBroker starts a broker with TLS and the process that encrypts.
func tlsBroker(binary, dir string) (*running, error) {
	config, cert, err := gearmanTLS(dir, "broker")
	if err != nil {
		return nil, err
	}
	o := server.BrokerOptions{Binary: binary, Durability: "none", Config: config}
	r, err := launch(dir, o, func(b *server.BrokerServer) string { return b.Gearman })
	if err != nil {
		return nil, err
	}
	return r, r.encrypt(dir, cert)
}

// gearmanTLS makes a certificate, and the settings of a broker that uses it.
func gearmanTLS(dir, owner string) (config, cert string, err error) {
	cert, key, err := server.Certificate(dir, owner)
	return fmt.Sprintf("[gearman]\ntls_cert = %q\ntls_key = %q\n", cert, key), cert, err
}

// startLimitTLS starts the limit server with TLS and the process that encrypts.
func startLimitTLS(dir string) (*running, error) {
	cert, key, err := server.Certificate(dir, "limit")
	if err != nil {
		return nil, err
	}
	r, err := startSelf(dir, "limit",
		func(addr string) string { return fmt.Sprintf("%s=%s %s %s", limitTLSEnv, addr, cert, key) })
	if err != nil {
		return nil, err
	}
	return r, r.encrypt(dir, cert)
}

// encrypt starts a process that encrypts for each address of the clients of a server. If that fails, it stops the
// server.
func (r *running) encrypt(dir, cert string) error {
	var addrs []string
	for secured := range strings.SplitSeq(r.addr, ",") {
		stop := r.stop
		tunnel, err := startSelf(dir, "tunnel", func(addr string) string {
			return fmt.Sprintf("%s=%s %s %s", tunnelEnv, addr, secured, cert)
		})
		if err != nil {
			stop()
			return err
		}
		addrs = append(addrs, tunnel.addr)
		r.stop = func() {
			tunnel.stop()
			stop()
		}
	}
	r.addr = strings.Join(addrs, ",")
	return nil
}

func limitTLS(text string) error {
	var addr, cert, key string
	if _, err := fmt.Sscan(text, &addr, &cert, &key); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	ln, err := tls.Listen("tcp", addr, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return err
	}
	s := newBare()
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go s.serve(conn) // ends when the connection does
	}
}

// serve reads the packets of one connection until it ends.
func (s *bare) serve(conn net.Conn) {
	c, in, filled := &bareConn{to: conn}, make([]byte, 16<<10), 0
	for {
		n, err := conn.Read(in[filled:])
		if err != nil {
			_ = conn.Close() // it has ended
			return
		}
		filled += n
		used := s.read(c, in[:filled])
		if filled = copy(in, in[used:filled]); filled == len(in) {
			in = append(in, make([]byte, len(in))...)
		}
	}
}

func tunnel(text string) error {
	var addr, secured, cert string
	if _, err := fmt.Sscan(text, &addr, &secured, &cert); err != nil {
		return err
	}
	pem, err := os.ReadFile(cert)
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		return errors.New("no certificate in " + cert)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	for {
		plain, err := ln.Accept()
		if err != nil {
			return err
		}
		encrypted, err := tls.Dial("tcp", secured, &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13})
		if err != nil {
			return err
		}
		go pass(plain, encrypted) // each ends when the connection does
		go pass(encrypted, plain)
	}
}

// pass copies until one side has closed, and closes both.
func pass(from, to net.Conn) {
	// the end of either side is no error here
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, inSize))
	_, _ = from.Close(), to.Close()
}
