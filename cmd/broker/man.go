//go:build man

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"broker/cmd/broker/cli"
	"broker/docs"
	"broker/operate/docsite"
)

// buildCommands are commands for the build only; released programs do not have them. man writes the manual pages, the
// shell completions and the documentation site.
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
	header := doc.GenManHeader{
		Title: strings.ToUpper(name), Section: "1", Source: "broker", Manual: "broker", Date: &date,
	}
	var page bytes.Buffer
	if err := doc.GenMan(cmd, &header, &page); err != nil {
		return err
	}
	text, others, _ := strings.Cut(page.String(), ".SH SEE ALSO\n")
	if cmd.DisableFlagParsing {
		text, _, _ = strings.Cut(text, ".SH OPTIONS\n")
		text += manOptions(cmd)
	}
	text += manSections(cmd)
	if others != "" {
		text += ".SH SEE ALSO\n" + others
	}
	return os.WriteFile(filepath.Join(dir, name+".1"), []byte(text), 0o644)
}

// manSections are the sections that cobra does not write.
func manSections(cmd *cobra.Command) string {
	environment, exits := manOf(cmd)
	var b strings.Builder
	section := func(title string, items [][2]string) {
		if len(items) > 0 {
			b.WriteString(".SH " + title + "\n")
		}
		for _, i := range items {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", i[0], strings.NewReplacer("-", `\-`, "`", `"`).Replace(i[1]))
		}
	}
	section("ENVIRONMENT", environment)
	section("EXIT STATUS", exits)
	return b.String()
}

// manOf returns the variables that a command reads, and its exit codes. Emulations have those of the original servers.
func manOf(cmd *cobra.Command) (environment, exits [][2]string) {
	for _, c := range cli.ExitCodes {
		exits = append(exits, [2]string{strconv.Itoa(c.Code), c.Meaning})
	}
	settings := [2]string{
		"BROKER_…", "every setting; \"broker check-config\" lists the names, and settings.md explains them",
	}
	if e := emulationOf(cmd.Name()); e != nil {
		return append(slices.Clone(e.environment), settings), e.exits
	}
	if cmd.Flags().Lookup("server") != nil {
		environment = [][2]string{
			{"BROKER_URL", "address of the broker, unless --server is given"},
			{"BROKER_TOKEN", "bearer token, unless --token is given"},
			{"BROKER_CONTEXT", "name of a broker that \"broker context\" knows, unless --context is given"},
		}
	}
	if cmd.Flags().Lookup("config") != nil {
		environment = append(environment, [2]string{
			"BROKER_CONFIG", "the settings file, unless --config is given",
		}, settings)
	}
	return environment, exits
}

// manOptions is the OPTIONS section of a command with its own parser: its help.
func manOptions(cmd *cobra.Command) string {
	var help bytes.Buffer
	cmd.SetOut(&help)
	_ = cmd.RunE(cmd, []string{emulationOf(cmd.Name()).help}) // only prints
	return ".SH OPTIONS\n.nf\n" +
		strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(help.String()) + ".fi\n"
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
