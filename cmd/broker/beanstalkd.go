package main

import (
	"io"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"

	"broker/cmd/broker/beanstalkd"
	"broker/cmd/broker/cli"
	"broker/config"
)

// beanstalkdSubcommand makes beanstalkdCommand a command of broker.
func beanstalkdSubcommand() *cobra.Command {
	return &cobra.Command{
		Use:                "beanstalkd",
		Short:              "serve beanstalkd clients with beanstalkd's command line; so does a link of that name",
		DisableFlagParsing: true, // parse follows beanstalkd's rules
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := beanstalkdCommand(args, cmd.OutOrStdout(), cmd.ErrOrStderr()); code != cli.ExitOK {
				return &cli.ExitError{Code: code}
			}
			return nil
		},
	}
}

// beanstalkdCommand runs the broker with beanstalkd's command line.
func beanstalkdCommand(args []string, stdout, stderr io.Writer) int {
	return beanstalkd.Main(args, stdout, stderr, buildVersion(), func(l beanstalkd.Launch) error { return serveBeanstalkd(l, stderr) })
}

// serveBeanstalkd runs the broker with beanstalkd's signals. Sockets of systemd replace the address of the command line.
func serveBeanstalkd(l beanstalkd.Launch, stderr io.Writer) error {
	p := newProcess(&l.Config, newLogger(l.Config.Log, stderr), launch{refuseOnly: true, onBound: l.OnBound, onReady: l.OnReady})
	if files := activation.Files(true); len(files) > 0 {
		p.sockets = activated{"beanstalk": files}
		sources, err := p.sockets.override(func() config.Sources { return config.Sources{Flags: map[string]string{}} })
		if err != nil {
			return err
		}
		p.config.Beanstalk.Listen = sources().Flags["beanstalk.listen"]
	}
	end := func() { p.requestShutdown(shutdown{}) }
	p.watchSignals(map[os.Signal]func(){
		syscall.SIGUSR1: func() { p.requestDrain(true) },
		syscall.SIGTERM: end,
		syscall.SIGINT:  end,
		syscall.SIGHUP:  end,
		syscall.SIGUSR2: end,
	})
	return p.run()
}
