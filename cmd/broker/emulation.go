package main

import (
	"io"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
)

// emulation is the command line of another server. A link of the server's name runs it too.
type emulation struct {
	server  string
	clients string // of which protocol
	run     func(args []string, stdout, stderr io.Writer) int

	// For the manual page: the argument that prints the help; the variables that the server reads, besides those of the
	// broker's settings; its exit codes.
	help        string
	environment [][2]string
	exits       [][2]string
}

var emulations = []*emulation{&asGearmand, &asBeanstalkd}

// emulationOf returns the emulation of a server; nil: there is none.
func emulationOf(server string) *emulation {
	for _, e := range emulations {
		if e.server == server {
			return e
		}
	}
	return nil
}

// command makes a command of broker.
func (e *emulation) command() *cobra.Command {
	return &cobra.Command{
		Use: e.server,
		Short: "serve " + e.clients + " clients with " + e.server +
			"'s command line; so does a link of that name",
		DisableFlagParsing: true, // run follows the server's own rules
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := e.run(args, cmd.OutOrStdout(), cmd.ErrOrStderr()); code != cli.ExitOK {
				return &cli.ExitError{Code: code}
			}
			return nil
		},
	}
}
