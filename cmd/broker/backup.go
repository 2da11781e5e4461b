package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/config"
	"broker/core"
	"broker/core/engine"
	"broker/operate/service"
)

// backupCommand copies the store: directly if no broker uses it, otherwise by asking that broker.
func backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "copy the store to a folder, whether the broker runs or not",
		Long: "Copy the store to a new folder, whether the broker runs or not. A running broker serves its clients meanwhile.\n" +
			"With --server or BROKER_URL it asks that broker, and DIR is a folder of the broker's host.\n" +
			"To restore a backup, start a broker with --data on a copy of that folder.",
		Args: cobra.ExactArgs(1),
	}
	sources, remote := settingFlags(cmd), cli.RemoteBackup(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir, err := filepath.Abs(args[0])
		if err != nil {
			return cli.Failed(err)
		}
		asked, err := remote(dir)
		if !asked {
			err = localBackup(cmd, sources(), dir)
		}
		if err != nil {
			return err
		}
		say(cmd.OutOrStdout(), "the store is copied to %s\nto restore it, start a broker with --data on a copy of that folder\n", dir)
		return nil
	}
	return cmd
}

// localBackup copies the store that the settings of this host name.
func localBackup(cmd *cobra.Command, from config.Sources, dir string) error {
	c, err := loadSettings(from)
	if err != nil {
		return err
	}
	stop := showCopy(cmd, c.Data, dir)
	defer stop()
	return cli.Failed(runBackup(&c, dir))
}

// runBackup copies a store that no broker uses, or asks the broker that uses it. If there is no store here, the broker may
// keep it where only the broker can see it.
func runBackup(c *config.Config, dir string) error {
	err := engine.BackupStopped(c.Data, dir)
	if !errors.Is(err, engine.ErrInUse) && !errors.Is(err, engine.ErrNoStore) {
		return err
	}
	asked := requestBackup(c, dir)
	if errors.Is(err, engine.ErrNoStore) && errors.Is(asked, errNotRunning) {
		return fmt.Errorf("%w, and %w", err, asked)
	}
	return asked
}

// errNotRunning says that no broker could be reached.
var errNotRunning = errors.New("no broker is running")

// requestBackup asks a running broker for a copy.
func requestBackup(c *config.Config, dir string) error {
	body, err := json.Marshal(map[string]string{"dir": dir})
	if err != nil {
		return err
	}
	addresses, err := config.ParseListen(c.HTTP.Listen)
	if err != nil || len(addresses) == 0 {
		return fmt.Errorf("%w: http.listen is off, and a running broker can only be asked over HTTP", errNotRunning)
	}
	at, scheme := addresses[0], "http"
	if c.HTTP.TLSCert != "" {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, scheme+"://"+hostHeader(at)+"/api/v1/backup", bytes.NewReader(body))
	if err != nil {
		return err
	}
	if password := c.HTTP.Password; password != "" {
		req.SetBasicAuth("", password)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, at.Network, at.Address)
	}, TLSClientConfig: trustOwnCertificate(&c.HTTP)}}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%w at %s: %w", errNotRunning, at, err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written
	return responseError(resp)
}

// trustOwnCertificate trusts exactly the certificate of the settings, whatever its name: the running broker has the same
// settings.
func trustOwnCertificate(h *config.HTTP) *tls.Config {
	own, err := h.TLS()
	if err != nil || own == nil {
		return nil // the settings are validated: there is no certificate
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: own.Certificates,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection takes its place
		VerifyConnection: func(s tls.ConnectionState) error {
			if !bytes.Equal(s.PeerCertificates[0].Raw, own.Certificates[0].Certificate[0]) {
				return errors.New("the server's certificate is not the one of http.tls_cert")
			}
			return nil
		},
	}
}

// hostHeader is the host of a request; a unix socket has none.
func hostHeader(a config.Address) string {
	if a.Network == "unix" {
		return "localhost"
	}
	return a.Address
}

// responseError is the error that a response reports.
func responseError(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	var problem struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
		problem.Detail = strings.TrimSpace(string(text))
	}
	if resp.StatusCode == http.StatusUnauthorized {
		problem.Detail += "; use the settings of the running broker, or --password"
	}
	return fmt.Errorf("the broker refused (%s): %s", resp.Status, problem.Detail)
}

// backup copies the store while it is in use.
func (p *process) backup(dir string) error {
	err := p.engine.Backup(dir)
	if errors.Is(err, os.ErrExist) {
		return &service.Error{Code: service.CodeExists, Field: "body.dir", Detail: err.Error()}
	}
	return storeError(err)
}

// storeError is the reply to clients where there is no store.
func storeError(err error) error {
	if errors.Is(err, engine.ErrNothingStored) {
		return &service.Error{Code: service.CodeUnsupported, Detail: err.Error()}
	}
	return err
}

// backupProgress is how much of the backup that is being made in dir is done, 0 to 1.
func (p *process) backupProgress(dir string) float64 {
	s, err := p.engine.Storage()
	if err != nil || s.DiskBytes == 0 {
		return 0
	}
	return min(float64(p.engine.BackupCopied(dir))/float64(s.DiskBytes), 1)
}

// checkStore verifies the store while the broker runs.
func (p *process) checkStore(ctx context.Context, progress func(part float64)) (*service.CheckReport, error) {
	r, err := p.engine.CheckStore(ctx, progress)
	if err != nil {
		return nil, storeError(err)
	}
	return &service.CheckReport{Bytes: r.Bytes, Damage: r.Damage, Orphans: r.Orphans, More: r.More}, nil
}

// storage is the state of the store.
func (p *process) storage() (core.Storage, error) {
	s, err := p.engine.Storage()
	return s, storeError(err)
}
