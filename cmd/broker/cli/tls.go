package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

// tlsFiles are PEM files for connections with TLS: authorities that are trusted besides those of the system, a client
// certificate, and its key if that is not in the same file. Contexts store their paths.
type tlsFiles struct {
	CA   string `toml:"tls_ca,omitempty"`
	Cert string `toml:"tls_cert,omitempty"`
	Key  string `toml:"tls_key,omitempty"`
}

func (f *tlsFiles) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.CA, "tls-ca", "", "PEM `FILE` of authorities that are trusted besides the system's, for https")
	flags.StringVar(&f.Cert, "tls-cert", "", "PEM `FILE` of a client certificate, for brokers that want one")
	flags.StringVar(&f.Key, "tls-key", "", "PEM `FILE` of its key (default that of --tls-cert)")
}

// absolute makes the paths independent of the current folder.
func (f *tlsFiles) absolute() error {
	for _, path := range []*string{&f.CA, &f.Cert, &f.Key} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

// config reads the files; nil: there are none, so the defaults apply.
func (f *tlsFiles) config() (*tls.Config, error) {
	switch {
	case *f == tlsFiles{}:
		return nil, nil
	case f.Key != "" && f.Cert == "":
		return nil, UsageError(errors.New("--tls-key needs --tls-cert"))
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, err
		}
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			c.RootCAs = x509.NewCertPool()
		}
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM form", f.CA)
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, cmp.Or(f.Key, f.Cert))
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// useTLS makes a client use files for TLS.
func (c *client) useTLS(f tlsFiles) error {
	if f == (tlsFiles{}) {
		return nil
	}
	if c.base.Scheme != "https" {
		return UsageError(fmt.Errorf("--tls-ca and --tls-cert are for https, and the broker is at %s", c.name))
	}
	config, err := f.config()
	if transport, is := c.http.Transport.(*http.Transport); err == nil && is {
		transport.TLSClientConfig = config
	}
	return Failed(err)
}

// tlsProblem explains a failure of TLS with a server that answers; nil: the error is another one.
func tlsProblem(server string, err error) error {
	if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) {
		return &ExitError{Code: ExitFailed, Err: fmt.Errorf(
			"the certificate of %s is not trusted: %w\nname the file of its authority with --tls-ca",
			server, untrusted.Err)}
	}
	if alert := (*net.OpError)(nil); errors.As(err, &alert) && alert.Op == "remote error" { // an alert, in crypto/tls
		return &ExitError{Code: ExitDenied, Err: fmt.Errorf(
			"%s refused the connection: %w\nif it wants a client certificate, name its file with --tls-cert",
			server, alert.Err)}
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return &ExitError{
			Code: ExitFailed, Err: fmt.Errorf("%s does not speak TLS: write http:// in place of https://", server),
		}
	}
	return nil
}
