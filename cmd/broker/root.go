package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
)

// newRoot is the command line: the commands that run or inspect a broker on this machine, and the commands of package
// cli, which call a running broker.
func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "broker",
		Short: "a durable job broker for clients of many protocols",
		Long: "A durable job broker for clients of Gearman, Faktory, Beanstalk, Amazon SQS, Workq, Qless, Conveyor and HTTP.\n\n" +
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
	for _, c := range []*cobra.Command{
		serveCommand(), demoCommand(), testCommand(), shadowCommand(), checkConfigCommand(),
		emulation("gearmand", "Gearman", gearmandCommand), emulation("beanstalkd", "beanstalkd", beanstalkdCommand),
		versionCommand(),
	} {
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

// emulation makes a command of broker from the command line of another server.
func emulation(server, clients string, run func(args []string, stdout, stderr io.Writer) int) *cobra.Command {
	return &cobra.Command{
		Use: server,
		Short: "serve " + clients + " clients with " + server +
			"'s command line; so does a link of that name",
		DisableFlagParsing: true, // run follows the server's own rules
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := run(args, cmd.OutOrStdout(), cmd.ErrOrStderr()); code != cli.ExitOK {
				return &cli.ExitError{Code: code}
			}
			return nil
		},
	}
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
