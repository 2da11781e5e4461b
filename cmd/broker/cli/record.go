package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"broker/migrate/wiretap"
)

// recordFlushEvery is the interval at which a recording is written to its file.
const recordFlushEvery = time.Second

func recordCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record --protocol NAME --upstream HOST:PORT --listen HOST:PORT --file FILE",
		Short: "record the traffic between clients and a server, to replay it later",
		Long: "Run a proxy between clients and any server of their protocol. Pass all bytes unchanged, and write both directions with their\n" +
			"times to a file, until interrupted. The file contains the bodies of jobs and the clients' credentials: only its owner may read\n" +
			"it. broker replay plays it against another server. The protocols are " +
			strings.Join(wiretap.Protocols(), ", ") + ".",
		Example: "  broker record --protocol beanstalk --upstream 127.0.0.1:11300 --listen 127.0.0.1:11301 --file app.rec",
		Args:    noArgs,
	}
	protocol := cmd.Flags().String("protocol", "", "protocol of the clients and the server")
	upstream := cmd.Flags().String("upstream", "", "`HOST:PORT` of the server")
	listen := cmd.Flags().String("listen", "", "`HOST:PORT` for the clients")
	file := cmd.Flags().String("file", "", "the `FILE`; it must not exist")
	for _, name := range []string{"protocol", "upstream", "listen", "file"} {
		_ = cmd.MarkFlagRequired(name) // exists
	}
	completeProtocol(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		*protocol = wiretap.ProtocolNamed(*protocol)
		if err := errors.Join(wiretap.CheckProtocol(*protocol), CheckAddress("upstream", *upstream)); err != nil {
			return UsageError(err)
		}
		return Failed(record(cmd, *protocol, *upstream, *listen, *file))
	}
	return cmd
}

// CheckAddress is an error if the value of a flag is not HOST:PORT.
func CheckAddress(flag, value string) error {
	if _, _, err := net.SplitHostPort(value); err != nil {
		return fmt.Errorf("--%s %s is not HOST:PORT", flag, value)
	}
	return nil
}

func completeProtocol(cmd *cobra.Command) {
	// exists
	_ = cmd.RegisterFlagCompletionFunc("protocol",
		cobra.FixedCompletions(wiretap.Protocols(), cobra.ShellCompDirectiveNoFileComp))
}

// record records until a signal.
func record(cmd *cobra.Command, protocol, upstream, listen, path string) (err error) {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		_ = ln.Close() // nobody has connected
		return err
	}
	rec, err := wiretap.NewRecorder(file, protocol, upstream)
	if err != nil {
		_ = ln.Close() // nobody has connected
		return errors.Join(err, file.Close())
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { _ = ln.Close() }) // ends Serve
	Say(cmd.OutOrStdout(), "recording %s from %s to %s\n", protocol, ln.Addr(), path)
	flushed := make(chan struct{})
	go func() { // ends with ctx
		defer close(flushed)
		flushRecording(ctx, cmd, rec)
	}()
	proxy := wiretap.Proxy{Server: upstream, Watcher: rec, Unreachable: func(err error) {
		Say(cmd.ErrOrStderr(), "the server cannot be reached: %v\n", err)
	}}
	err = proxy.Serve(ln)
	stop()
	<-flushed
	err = errors.Join(err, rec.Flush(), file.Sync(), file.Close())
	conns, bytes := rec.Counts()
	Say(cmd.OutOrStdout(), "%s, %s bytes\n", plural(conns, "connection"), count(int(bytes)))
	return err
}

// flushRecording writes the recording periodically. If that fails, it prints one message, and clients are not affected.
func flushRecording(ctx context.Context, cmd *cobra.Command, rec *wiretap.Recorder) {
	tick := time.NewTicker(recordFlushEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := rec.Flush(); err != nil {
				Say(cmd.ErrOrStderr(), "the recording has ended: %s; clients are served on\n", err)
				return
			}
		}
	}
}

func replayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay FILE --to HOST:PORT",
		Short: "play a recording against a server, and compare its replies",
		Long: "Play a recording of broker record against any server of the protocol, at the speed of the recording, and compare the replies\n" +
			"after normalising ids, times, and which of several waiting workers gets which job. Exit code 10 means that replies differ.\n" +
			"The server should be empty and need no password: requests about jobs that are not in the recording are not played.",
		Example: "  broker test --faults none --beanstalk 127.0.0.1:11300 &\n  broker replay app.rec --to 127.0.0.1:11300",
		Args:    cobra.ExactArgs(1),
	}
	to := cmd.Flags().String("to", "", "`HOST:PORT` of the server")
	fast := cmd.Flags().Bool("fast", false, "play without pauses; this does not reproduce delays and leases that end")
	out := addFormat(cmd)
	_ = cmd.MarkFlagRequired("to") // exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := CheckAddress("to", *to); err != nil {
			return UsageError(err)
		}
		report, err := replay(cmd, args[0], *to, *fast)
		if err != nil {
			return Failed(err)
		}
		if *out == formatJSON {
			err = PrintValue(cmd, report)
		} else {
			err = printComparison(cmd, &report)
		}
		switch {
		case err != nil:
			return Failed(err)
		case report.Dropped != "":
			return Failed(errors.New(report.Dropped))
		case report.Different > 0:
			return &ExitError{Code: ExitDifferent, Err: fmt.Errorf("%d replies differ", report.Different)}
		}
		return nil
	}
	return cmd
}

// replay plays a recording to its end, or to a signal.
func replay(cmd *cobra.Command, path, to string, fast bool) (report wiretap.Report, err error) {
	file, err := os.Open(path)
	if err != nil {
		return report, err
	}
	defer func() { _ = file.Close() }() // read only
	rec, err := wiretap.ReadRecording(file)
	if err != nil {
		return report, fmt.Errorf("%s: %w", path, err)
	}
	var dialer net.Dialer
	c, err := wiretap.NewComparer(wiretap.Options{
		Protocol: rec.Protocol, Server: rec.Server, Block: true,
		Dial: func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", to) },
	})
	if err != nil {
		return report, err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { c.Drop("interrupted") })
	if err := rec.Play(c, fast); err != nil {
		c.Close()
		return report, fmt.Errorf("%s: %w", path, err)
	}
	return c.Finish(), nil
}

// printComparison prints a report for people.
func printComparison(cmd *cobra.Command, r *wiretap.Report) error {
	t := table{header: []string{"REQUEST", "-COUNT", "-EQUAL", "-DIFFERENT", "-UNKNOWN"}}
	for _, v := range r.Verbs {
		t.add(oneLine(v.Verb, 40), count(int(v.Requests)), count(int(v.Equal)), count(int(v.Different)),
			count(int(v.Unknown)))
	}
	if err := t.print(cmd.OutOrStdout()); err != nil {
		return err
	}
	for _, d := range r.Found {
		Say(cmd.OutOrStdout(), "%s\n", d.String())
	}
	Say(cmd.OutOrStdout(), "%s\n%s\n", r.Summary(), r.Verdict())
	for _, why := range slices.Sorted(maps.Keys(r.Reasons)) {
		Say(cmd.OutOrStdout(), "unknown: %d %s\n", r.Reasons[why], why)
	}
	return nil
}
