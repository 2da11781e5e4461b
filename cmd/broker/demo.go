package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/cmd/broker/process"
	"broker/operate/demo"
)

// demoFlags are the settings that a demo accepts: its addresses.
var demoFlags = []string{"workq", "gearman", "faktory", "http"}

// demoCommand runs a broker with a temporary store and with clients.
func demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "run a broker with sample jobs, to try the console",
		Long: "Run a broker with a temporary store, and clients of Workq, Gearman, Faktory and HTTP that submit and run jobs, so\n" +
			"that the console has something to show. SIGINT ends it and removes the store. It reads no settings file and no\n" +
			"environment.",
		Args: cobra.NoArgs,
	}
	addressFlags(cmd, demoFlags)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := throwAwaySettings(cmd, map[string]string{"log.level": "warn"})
		if err != nil {
			return err
		}
		return cli.Failed(runDemo(cmd, &c))
	}
	return cmd
}

// runDemo serves until a signal ends it.
func runDemo(cmd *cobra.Command, c *process.Settings) (err error) {
	var at demo.Addresses
	for _, a := range []struct {
		flag, listen string
		to           *string
	}{
		{"workq", c.Workq.Listen.String(), &at.Workq},
		{"gearman", c.Gearman.Listen.String(), &at.Gearman},
		{"faktory", c.Faktory.Listen.String(), &at.Faktory},
		{"http", c.HTTP.Listen.String(), &at.HTTP},
	} {
		if _, _, err := net.SplitHostPort(a.listen); err != nil {
			return cli.UsageError(fmt.Errorf("--%s %s: the clients of the demo need this port: expected HOST:PORT",
				a.flag, a.listen))
		}
		*a.to = a.listen
	}
	if c.Data, err = os.MkdirTemp("", "broker-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.Data)) }()
	var clients atomic.Pointer[demo.Shop]
	p := newProcess(c, process.NewLogger(c.Log, os.Stderr), process.Launch{OnReady: func() error {
		shop, err := demo.Open(at)
		if err != nil {
			return err
		}
		clients.Store(shop)
		cli.Say(cmd.OutOrStdout(),
			"The console is at http://%s/\nInterrupt the command to end the demo; its store in %s is then removed.\n",
			at.HTTP, c.Data)
		return nil
	}})
	stop := func() { // the clients first, because the broker waits for connected clients
		if shop := clients.Load(); shop != nil {
			shop.Close()
		}
		p.RequestShutdown(process.Shutdown{})
	}
	p.WatchSignals(map[os.Signal]func(){syscall.SIGTERM: stop, syscall.SIGINT: stop})
	return p.Run()
}
