package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"broker/integration/server"
)

// tlsName is the broker whose clients come over TLS. The load program encrypts nothing: a process between it and the broker
// does, whose processor time counts neither as the broker's nor as the load's.
const tlsName = "broker none, tls"

// tunnelEnv makes a child process the one that encrypts: its address, that of the broker and the broker's certificate.
const tunnelEnv = "BENCH_TUNNEL"

// tlsBroker starts a broker with TLS and the process that encrypts.
func tlsBroker(binary, dir string) (*running, error) {
	cert, key, err := server.Certificate(dir, "broker")
	if err != nil {
		return nil, err
	}
	o := server.BrokerOptions{Binary: binary, Durability: "none", Config: fmt.Sprintf("[gearman]\ntls_cert = %q\ntls_key = %q\n", cert, key)}
	var secured string
	r, err := launch(dir, o, func(b *server.BrokerServer) string {
		secured = b.Gearman
		return b.Gearman
	})
	if err != nil {
		return nil, err
	}
	tunnel, err := startSelf(dir, "tunnel", func(addr string) string {
		return fmt.Sprintf("%s=%s %s %s", tunnelEnv, addr, secured, cert)
	})
	if err != nil {
		r.stop()
		return nil, err
	}
	stop := r.stop
	r.addr, r.stop = tunnel.addr, func() {
		tunnel.stop()
		stop()
	}
	return r, nil
}

// serveTunnel encrypts for clients if this process was started to do so.
func serveTunnel() {
	text := os.Getenv(tunnelEnv)
	if text == "" {
		return
	}
	err := tunnel(text)
	fmt.Fprintln(os.Stderr, "tunnel:", err)
	os.Exit(1)
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
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, inSize)) // the end of either side is no error here
	_, _ = from.Close(), to.Close()
}
