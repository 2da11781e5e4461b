package main

import (
	"os"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/cmd/broker/process"
	"broker/config"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run the broker until SIGTERM or SIGINT",
		Long: "Run the broker until SIGTERM or SIGINT. SIGHUP reloads the settings. SIGUSR1 stops handing out jobs, so that workers\n" +
			"can finish before a restart; SIGUSR2 resumes.",
		Args: cobra.NoArgs,
	}
	sources := settingFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		sockets, err := process.ActivatedSockets()
		if err != nil {
			return cli.Failed(err)
		}
		all, err := sockets.Override(sources)
		if err != nil {
			return cli.Failed(err)
		}
		c, err := loadSettings(all())
		if err != nil {
			return err
		}
		return cli.Failed(serve(&c, all, sockets))
	}
	return cmd
}

// serve runs a broker. On SIGHUP it reads the settings from sources again.
func serve(c *process.Settings, sources func() config.Sources, sockets process.Activated) error {
	p := newProcess(c, process.NewLogger(c.Log, os.Stderr),
		process.Launch{
			Sockets: sockets,
			Reread:  func() (process.Settings, error) { return process.ReadSettings(sources()) },
		})
	p.WatchSignals(map[os.Signal]func(){
		syscall.SIGTERM: func() { p.RequestShutdown(process.Shutdown{}) },
		syscall.SIGINT:  func() { p.RequestShutdown(process.Shutdown{}) },
		syscall.SIGHUP:  func() { _ = p.Reload() }, // the log has it
		syscall.SIGUSR1: func() { p.RequestDrain(true) },
		syscall.SIGUSR2: func() { p.RequestDrain(false) },
	})
	return p.Run()
}

// newProcess makes the process of a broker of this build.
func newProcess(c *process.Settings, log zerolog.Logger, l process.Launch) *process.Process {
	l.Version, l.Clock = buildVersion(), processClock()
	return process.New(c, log, l)
}
