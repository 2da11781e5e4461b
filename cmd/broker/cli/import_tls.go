package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"broker/migrate/importer"
)

// importTLS are the files for TLS of an import.
type importTLS struct{ ca, cert, key string }

func addImportTLS(cmd *cobra.Command) *importTLS {
	t := &importTLS{}
	flags := cmd.Flags()
	flags.StringVar(&t.ca, "tls-ca", "", "PEM `FILE` of authorities that are trusted besides the system's, for SOURCE and --to with TLS")
	flags.StringVar(&t.cert, "tls-cert", "", "PEM `FILE` of a client certificate, for servers that want one")
	flags.StringVar(&t.key, "tls-key", "", "PEM `FILE` of its key (default that of --tls-cert)")
	return t
}

// config makes the settings of TLS; nil: the defaults.
func (t *importTLS) config(servers *importer.Servers) (*tls.Config, error) {
	switch {
	case *t == importTLS{}:
		return nil, nil
	case t.key != "" && t.cert == "":
		return nil, UsageError(errors.New("--tls-key needs --tls-cert"))
	case !servers.UseTLS():
		return nil, UsageError(errors.New("--tls-ca and --tls-cert: neither SOURCE nor --to asks for TLS; write it as tcp+tls://HOST:PORT or rediss://HOST:PORT"))
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, err
		}
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			c.RootCAs = x509.NewCertPool()
		}
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM form", t.ca)
		}
	}
	if t.cert != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, cmp.Or(t.key, t.cert))
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
