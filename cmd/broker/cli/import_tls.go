package cli

import (
	"crypto/tls"
	"errors"
	"strings"

	"broker/migrate/importer"
)

// importTLS makes the settings of TLS for SOURCE and --to; nil: the defaults. The same files are for the broker's
// HTTP port.
func (c *connection) importTLS(servers *importer.Servers, overHTTP bool) (*tls.Config, error) {
	if c.tls != (tlsFiles{}) && !servers.UseTLS() && !(overHTTP && strings.HasPrefix(c.server, "https:")) {
		return nil, UsageError(errors.New("--tls-ca and --tls-cert: neither SOURCE nor --to asks for TLS; " +
			"write it as tcp+tls://HOST:PORT or rediss://HOST:PORT"))
	}
	return c.tls.config()
}
