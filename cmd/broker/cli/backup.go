package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/spf13/cobra"
)

// LocalBroker is the broker in the settings of this host.
type LocalBroker struct {
	Server   string
	Password string      // used if there is no token
	TLS      *tls.Config // nil: as usual
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// Backup takes backups from running brokers.
type Backup struct{ conn *connection }

// AddBackup adds --server and --token to the backup command.
func AddBackup(cmd *cobra.Command) *Backup { return &Backup{addConnection(cmd)} }

// Named reports whether the command line or the environment names a broker.
func (b *Backup) Named() bool {
	return b.conn.server != "" || b.conn.context != "" || os.Getenv("BROKER_URL") != "" ||
		os.Getenv("BROKER_CONTEXT") != ""
}

// Open requests a copy of the store from the named broker, or else from the broker of this host. It returns a tar file
// and its size in bytes.
func (b *Backup) Open(ctx context.Context, local LocalBroker) (io.ReadCloser, int64, error) {
	named := *b.conn
	if !b.Named() {
		named.server = local.Server
	}
	c, err := named.open()
	if err != nil {
		return nil, 0, err
	}
	if transport, ok := c.http.Transport.(*http.Transport); ok && !b.Named() {
		transport.DialContext, transport.TLSClientConfig = local.Dial, local.TLS
	}
	req, err := c.request(ctx, http.MethodGet, "backup", nil, nil)
	if err != nil {
		return nil, 0, err
	}
	if c.token == "" && local.Password != "" {
		req.SetBasicAuth("", local.Password)
	}
	req.Header.Set("Accept-Encoding", "identity") // so that the size is known
	resp, err := c.send(req)
	if Code(err) == ExitDenied {
		err = &ExitError{
			Code: ExitDenied,
			Err:  fmt.Errorf("%w; use the settings of the running broker, --password, or --token of an admin", err),
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return resp.Body, resp.ContentLength, nil
}
