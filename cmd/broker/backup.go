package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/cmd/broker/process"
	"broker/config"
	"broker/core/engine"
)

// backupCommand copies the store. If a broker uses the store, that broker sends the copy; otherwise the command copies
// it directly.
func backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup DIR|FILE.tar|-",
		Short: "copy the store to a folder or a tar file, whether the broker runs or not",
		Long: "Copy the store to a new folder, to a new tar file or, with -, as a tar file to the standard output, whether the broker runs\n" +
			"or not. A running broker sends the copy to this command, so it needs no right to write to DIR. It serves clients during that time.\n" +
			"With --server or BROKER_URL, copy the store of that broker.\n" +
			"To restore a backup, start a broker with --data on a copy of that folder, or on a new folder into which the tar file is unpacked.",
		Args: cobra.ExactArgs(1),
	}
	sources, remote := settingFlags(cmd), cli.AddBackup(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		to := args[0]
		if to != "-" {
			var err error
			if to, err = filepath.Abs(to); err != nil {
				return cli.Failed(err)
			}
		}
		err := runBackup(cmd, sources(), remote, to)
		if errors.Is(err, os.ErrExist) {
			return &cli.ExitError{Code: cli.ExitConflict, Err: err}
		}
		if err != nil {
			return cli.Failed(err)
		}
		if to != "-" {
			cli.Say(cmd.OutOrStdout(), "the store is copied to %s\n", to)
		}
		return nil
	}
	return cmd
}

// isTar reports whether a backup goes to a tar file.
func isTar(to string) bool { return to == "-" || strings.HasSuffix(to, ".tar") }

// runBackup gets the backup from a named broker, from a local store that no broker uses, or from the broker that uses
// the local store. If there is no visible local store, it asks the local broker, because the store may be in a folder
// that only the broker can see.
func runBackup(cmd *cobra.Command, from config.Sources, remote *cli.Backup, to string) error {
	if remote.Named() {
		return receiveBackup(cmd, remote, cli.LocalBroker{}, to)
	}
	c, err := loadSettings(from)
	if err != nil {
		return err
	}
	err = copyStopped(cmd, &c, to)
	if !errors.Is(err, engine.ErrInUse) && !errors.Is(err, engine.ErrNoStore) {
		return err
	}
	at, running := localBroker(&c)
	if running == nil {
		running = receiveBackup(cmd, remote, at, to)
	}
	if errors.Is(err, engine.ErrNoStore) && running != nil && cli.Code(running) == cli.ExitUnreachable {
		return fmt.Errorf("%w, and %w", err, running)
	}
	return running
}

// copyStopped copies a store that no broker uses.
func copyStopped(cmd *cobra.Command, c *process.Settings, to string) error {
	if !isTar(to) {
		defer showCopy(cmd, c.Data, to)()
		return engine.BackupStopped(c.Data, to)
	}
	between := process.StreamFolder(c.Data)
	if err := process.RemoveStream(between); err != nil {
		return err
	}
	if err := engine.BackupStopped(c.Data, between); err != nil {
		return err
	}
	archive, err := engine.OpenBackupTar(between)
	if err == nil {
		err = writeTar(cmd, to, func(w io.Writer) error {
			_, err := archive.WriteTo(w)
			return err
		})
	}
	return errors.Join(err, process.RemoveStream(between))
}

// receiveBackup receives a backup from a running broker.
func receiveBackup(cmd *cobra.Command, remote *cli.Backup, at cli.LocalBroker, to string) error {
	if to != "-" {
		if _, err := os.Lstat(to); err == nil {
			return fmt.Errorf("copy store to %s: %w", to, os.ErrExist)
		}
	}
	body, size, err := remote.Open(cmd.Context(), at)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // only read
	bar := cli.NewBar(cmd, size, cli.BarBytes)
	defer func() { _ = bar.Finish() }() // only shows
	shown := io.TeeReader(body, bar)
	if !isTar(to) {
		return engine.ReceiveBackup(shown, to)
	}
	return writeTar(cmd, to, func(w io.Writer) error {
		_, err := io.Copy(w, shown)
		return err
	})
}

// writeTar writes a tar file or the standard output. A file gets its final name once it is complete.
func writeTar(cmd *cobra.Command, to string, write func(w io.Writer) error) error {
	if to == "-" {
		return write(cmd.OutOrStdout())
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("copy store to %s: %w", to, os.ErrExist)
	}
	part := to + ".unfinished"
	file, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, to)
}

// localBroker is the broker in the settings of this host.
func localBroker(c *process.Settings) (cli.LocalBroker, error) {
	if c.HTTP.Listen.Off() {
		return cli.LocalBroker{}, errors.New("http.listen is off, and a running broker can only be asked over HTTP")
	}
	at, scheme := c.HTTP.Listen[0], "http"
	if c.HTTP.TLSCert != "" {
		scheme = "https"
	}
	return cli.LocalBroker{
		Server: scheme + "://" + hostHeader(at), Password: c.HTTP.Password, TLS: trustOwnCertificate(&c.HTTP),
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, at.Network, at.Address)
		},
	}, nil
}

// trustOwnCertificate trusts exactly the certificate in the settings, with any name, because the running broker uses
// the same settings.
func trustOwnCertificate(h *config.HTTP) *tls.Config {
	own, err := h.TLS()
	if err != nil || own == nil {
		return nil // the settings are validated: there is no certificate
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: own.Certificates,
		InsecureSkipVerify: true,
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
