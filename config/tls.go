package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS loads the certificate files; it returns nil if none are set.
func (p Protocol) TLS() (*tls.Config, error) { return readTLS(p.TLSCert, p.TLSKey, p.TLSClientCA) }

// TLS loads the certificate files; it returns nil if none are set.
func (h HTTP) TLS() (*tls.Config, error) { return readTLS(h.TLSCert, h.TLSKey, h.TLSClientCA) }

func readTLS(certFile, keyFile, clientCA string) (*tls.Config, error) {
	if certFile == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if clientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(clientCA)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", clientCA)
	}
	return c, nil
}
