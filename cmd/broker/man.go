//go:build man

package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"broker/cmd/broker/cli"
)

// buildCommands are commands of the build, which released programs do not have: man writes the manual pages and the
// completions of shells.
func buildCommands() []*cobra.Command {
	cmd := &cobra.Command{
		Use:    "man DIR",
		Short:  "write manual pages to DIR/man and completions to DIR/completions",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		root := cmd.Root()
		root.DisableAutoGenTag = true // pages depend on the commands alone
		root.InitDefaultHelpCmd()
		root.InitDefaultCompletionCmd()
		return cli.Failed(writePages(root, args[0]))
	}
	return []*cobra.Command{cmd}
}

func writePages(root *cobra.Command, dir string) error {
	pages, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, d := range []string{pages, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	epoch := time.Unix(0, 0)
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "broker", Manual: "broker", Date: &epoch}, pages); err != nil {
		return err
	}
	if err := root.GenBashCompletionFileV2(filepath.Join(completions, "broker.bash"), true); err != nil {
		return err
	}
	if err := root.GenZshCompletionFile(filepath.Join(completions, "_broker")); err != nil {
		return err
	}
	return root.GenFishCompletionFile(filepath.Join(completions, "broker.fish"), true)
}
