//go:build man

package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"broker/cmd/broker/cli"
	"broker/docs"
	"broker/operate/docsite"
)

// buildCommands are commands of the build, which released programs do not have: man writes the manual pages, the completions
// of shells and the documentation as a site.
func buildCommands() []*cobra.Command {
	cmd := &cobra.Command{
		Use:    "man DIR",
		Short:  "write manual pages to DIR/man, completions to DIR/completions and the documentation to DIR/docs",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		root := cmd.Root()
		root.DisableAutoGenTag = true // pages depend on the commands alone
		root.InitDefaultHelpCmd()
		root.InitDefaultCompletionCmd()
		return cli.Failed(errors.Join(writePages(root, args[0]), writeSite(filepath.Join(args[0], "docs"))))
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

// writeSite writes the documentation in HTML.
func writeSite(dir string) error {
	site, err := docsite.Render(docs.Files)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range site.Names() {
		if err := os.WriteFile(filepath.Join(dir, name), site.File(name), 0o644); err != nil {
			return err
		}
	}
	return nil
}
