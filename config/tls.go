package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TLS reads the certificate files; nil without an error if none are set.
func (p Protocol) TLS() (*tls.Config, error) {
	if p.TLSCert == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(p.TLSCert, p.TLSKey)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if p.TLSClientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(p.TLSClientCA)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", p.TLSClientCA)
	}
	return c, nil
}
