package main

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/config"
)

// newRoot is the command line: the commands that run or inspect a broker on this machine, and the commands of package
// cli, which call a running broker.
func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "broker",
		Short: "a durable job broker for clients of many protocols",
		Long: "A durable job broker for clients of " + protocolTitles() + " and HTTP.\n\n" +
			"  broker serve                     start the broker with its store in ./data\n" +
			"  broker push emails '[\"hello\"]'   submit a job\n" +
			"  broker queues                    look at the queues",
		SilenceErrors: true, // execute prints them
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(stderr)
			_ = cmd.Help() // fails only without a terminal
			return &cli.ExitError{Code: cli.ExitUsage}
		},
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.Version = buildVersion()
	root.SetVersionTemplate(versionLine())
	root.Flags().BoolP("version", "v", false, "print the version")
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddGroup(
		&cobra.Group{ID: cli.GroupServer, Title: "Run a broker:"},
		&cobra.Group{ID: cli.GroupJobs, Title: "Jobs:"},
		&cobra.Group{ID: cli.GroupQueues, Title: "Queues and workers:"},
		&cobra.Group{ID: cli.GroupOperate, Title: "Operate:"},
	)
	servers := []*cobra.Command{
		serveCommand(), demoCommand(), testCommand(), shadowCommand(), checkConfigCommand(), versionCommand(),
	}
	for _, e := range emulations {
		servers = append(servers, e.command())
	}
	for _, c := range servers {
		c.GroupID = cli.GroupServer
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{backupCommand(), restoreCommand(), explainCommand(), doctorCommand()} {
		c.GroupID = cli.GroupOperate
		root.AddCommand(c)
	}
	for _, c := range cli.Commands() {
		if c.Name() == "cluster" {
			c.AddCommand(detachCommand())
		}
		root.AddCommand(c)
	}
	root.AddCommand(buildCommands()...)
	return root
}

// protocolTitles are the protocols of the clients.
func protocolTitles() string {
	var titles []string
	c := config.Default()
	for _, p := range c.WireProtocols() {
		titles = append(titles, p.Title)
	}
	return strings.Join(titles, ", ")
}

// execute runs the command named by the arguments and returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return cli.ExitOK
	}
	if err.Error() != "" {
		cli.PrintError(stderr, cmd, err)
	}
	var exit *cli.ExitError
	if !errors.As(err, &exit) {
		cli.Say(stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
	return cli.Code(err)
}
