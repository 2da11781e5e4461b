package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/cmd/broker/process"
	"broker/config"
	"broker/operate/hostile"
)

// testCommand runs a hostile broker.
func testCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test",
		Short: "run an unreliable broker, for the tests of your programs",
		Long: "Run a broker in memory that causes the faults of real brokers and networks: it delivers twice, ends leases early,\n" +
			"refuses and reorders jobs, answers late, loses connections, and changes its clock. The same seed and the same requests give the\n" +
			"same faults. It prints the seed and each fault, and when it is stopped a verdict on the workers: which jobs ended twice with\n" +
			"different results, after a lost lease or not at all, though no fault explains it. GET /api/v1/faults has all that too. It reads\n" +
			"no settings file and no environment.\n\n" +
			"The faults, each with the share of affected jobs: duplicate, drop, late, expire, busy, reorder, jump.",
		Args: cobra.NoArgs,
	}
	seed, faults := &textFlag{kind: "N"}, &textFlag{kind: "LIST", text: hostile.DefaultRates.String()}
	cmd.Flags().Var(seed, "seed", "number that decides which jobs have faults (default: random, and printed)")
	cmd.Flags().Var(faults, "faults", "kinds and shares, such as duplicate=0.05,drop=0.01; or none")
	addressFlags(cmd, config.ListenerNames())
	cmd.Flags().SortFlags = false
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		number := rand.Uint64N(1_000_000)
		if seed.text != "" {
			var err error
			if number, err = strconv.ParseUint(seed.text, 10, 64); err != nil {
				return fmt.Errorf("--seed: %q is not a number", seed.text)
			}
		}
		rates, err := hostile.ParseRates(faults.text)
		if err != nil {
			return fmt.Errorf("--faults: %w", err)
		}
		fixed := map[string]string{"log.level": "warn", "durability": "none"}
		standard := config.Default()
		for _, p := range standard.WireProtocols() {
			if p.Listen.Off() {
				fixed[p.Name+".listen"] = net.JoinHostPort("127.0.0.1", cmp.Or(p.Port, "0"))
			}
		}
		c, err := throwAwaySettings(cmd, fixed)
		if err != nil {
			return err
		}
		return cli.Failed(runTest(cmd, &c, number, rates))
	}
	return cmd
}

// runTest serves until a signal ends it, and judges the workers.
func runTest(cmd *cobra.Command, c *process.Settings, seed uint64, rates hostile.Rates) error {
	out := cmd.OutOrStdout()
	log := hostile.NewLog(seed, rates, func(e hostile.Event) { cli.Say(out, "%s\n", e) })
	p := newProcess(c, process.NewLogger(c.Log, os.Stderr), process.Launch{
		Faults: &hostile.Options{
			Log: log, Conns: hostile.NewConnections(), Clock: hostile.NewClock(processClock()),
		},
		OnReady: func() error {
			cli.Say(out, "seed %d, faults %s\n", seed, rates)
			for _, f := range c.WireProtocols() {
				cli.Say(out, "%s %s\n", f.Name, f.Listen)
			}
			cli.Say(out, "http %s\nready\n", c.HTTP.Listen)
			return nil
		},
	})
	stop := func() { p.RequestShutdown(process.Shutdown{}) }
	p.WatchSignals(map[os.Signal]func(){syscall.SIGTERM: stop, syscall.SIGINT: stop})
	if err := p.Run(); err != nil {
		return err
	}
	log.Stopped()
	verdict := log.Verdict()
	cli.Say(out, "%s", verdict)
	if !verdict.Passed() {
		cli.Say(out, "repeat it with --seed %d --faults %s\n", seed, rates)
		return &cli.ExitError{Code: cli.ExitWorkers}
	}
	return nil
}
