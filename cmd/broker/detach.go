package main

import (
	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/core/replica"
)

// detachCommand turns the store of a node into the store of a single broker.
func detachCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "detach DIR",
		Short: "turn the store of a stopped node into the store of a single broker",
		Long: "Turn the store of a stopped node into the store of a single broker, if the majority of its cluster is lost. Start a\n" +
			"broker on it, or a new cluster together with nodes whose folders are empty. Jobs that this node did not have are lost.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			applied, err := replica.Detach(args[0])
			if err != nil {
				return cli.Failed(err)
			}
			cli.Say(cmd.OutOrStdout(), "%s is a store of its own now; %d entries of its log were applied\n", args[0],
				applied)
			return nil
		},
	}
}
