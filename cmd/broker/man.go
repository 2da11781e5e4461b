//go:build man

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"broker/cmd/broker/cli"
	"broker/docs"
	"broker/operate/docsite"
)

// buildCommands are commands for the build only; released programs do not have them. man writes the manual pages, the shell
// completions and the documentation site.
func buildCommands() []*cobra.Command {
	cmd := &cobra.Command{
		Use:    "man DIR",
		Short:  "write manual pages to DIR/man, completions to DIR/completions and the documentation to DIR/docs",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		root := cmd.Root()
		root.DisableAutoGenTag = true // pages must depend only on the commands
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
	if err := writeManual(root, pages, released()); err != nil {
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

// released is the date of the manual pages: the date of the release, so that a second build gives the same files.
func released() time.Time {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return time.Now()
	}
	return time.Unix(seconds, 0)
}

// writeManual writes the pages of a command and of those below it.
func writeManual(cmd *cobra.Command, dir string, date time.Time) error {
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := writeManual(sub, dir, date); err != nil {
			return err
		}
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	header := doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "broker", Manual: "broker", Date: &date}
	var page bytes.Buffer
	if err := doc.GenMan(cmd, &header, &page); err != nil {
		return err
	}
	text, others, _ := strings.Cut(page.String(), ".SH SEE ALSO\n")
	text += manSections(cmd)
	if others != "" {
		text += ".SH SEE ALSO\n" + others
	}
	return os.WriteFile(filepath.Join(dir, name+".1"), []byte(text), 0o644)
}

// manSections are the sections that cobra does not write.
func manSections(cmd *cobra.Command) string {
	var b strings.Builder
	if cmd.Flags().Lookup("server") != nil {
		b.WriteString(".SH ENVIRONMENT\n")
		for _, v := range [][2]string{
			{"BROKER_URL", "address of the broker, unless --server is given"},
			{"BROKER_TOKEN", "bearer token, unless --token is given"},
			{"BROKER_CONTEXT", "name of a broker that \"broker context\" knows, unless --context is given"},
		} {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", v[0], strings.ReplaceAll(v[1], "-", `\-`))
		}
	}
	b.WriteString(".SH EXIT STATUS\n")
	for _, c := range cli.ExitCodes {
		fmt.Fprintf(&b, ".TP\n.B %d\n%s\n", c.Code, strings.ReplaceAll(c.Meaning, "`", "\""))
	}
	return b.String()
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
	for name := range site.Names() {
		if err := os.WriteFile(filepath.Join(dir, name), site.File(name), 0o644); err != nil {
			return err
		}
	}
	return nil
}
