package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/config"
)

// flagSettings says which setting each flag sets, in the order of the help.
var flagSettings = []struct{ flag, setting, value, about string }{
	{"data", "data", "DIR", "folder of the store"},
	{"durability", "durability", "sync|relaxed|none", "when a reply may leave: once synced, before, or memory only"},
	{"workq", "workq.listen", "ADDR", "where Workq clients are served: host:port, unix:/path or off"},
	{"gearman", "gearman.listen", "ADDR", "where Gearman clients are served"},
	{"faktory", "faktory.listen", "ADDR", "where Faktory clients are served"},
	{"http", "http.listen", "ADDR", "where the console, the API and the metrics are served"},
	{"password", "faktory.password", "PW", "password for Faktory and HTTP clients"},
}

// settingFlags adds the flags of flagSettings to a command and returns where its settings come from once the command line
// is parsed.
func settingFlags(cmd *cobra.Command) func() config.Sources {
	flags := cmd.Flags()
	file := &textFlag{kind: "FILE"}
	flags.Var(file, "config", "settings file, in TOML")
	for _, f := range flagSettings {
		flags.Var(&textFlag{kind: f.value}, f.flag, f.about)
	}
	cmd.Flags().SortFlags = false
	cmd.Long += "\n\nEvery setting can be given in the file and in the environment, by a name that check-config shows.\n" +
		"File, then environment, then flags: the last wins."
	return func() config.Sources {
		s := config.Sources{File: file.text, Env: os.Environ(), Flags: make(map[string]string)}
		for _, f := range flagSettings {
			if given := flags.Lookup(f.flag); given.Changed {
				s.Flags[f.setting] = given.Value.String()
			}
		}
		return s
	}
}

// textFlag is a flag whose help shows what kind of value it takes.
type textFlag struct{ text, kind string }

func (f *textFlag) String() string     { return f.text }
func (f *textFlag) Set(s string) error { f.text = s; return nil }
func (f *textFlag) Type() string       { return f.kind }

// loadSettings reads the settings of a command.
func loadSettings(sources config.Sources) (config.Config, error) {
	c, err := readSettings(sources)
	if err != nil {
		return c, cli.Failed(fmt.Errorf("bad settings:\n%w", err))
	}
	return c, nil
}

// checkConfigCommand reads the settings as serve would and shows those in force.
func checkConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check-config",
		Short: "check the settings and show those in force",
		Long:  "Check the settings as serve would read them, and show those in force with the environment variable of each.",
		Args:  cobra.NoArgs,
	}
	sources := settingFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadSettings(sources())
		if err != nil {
			return err
		}
		stdout := cmd.OutOrStdout()
		for _, s := range config.Settings(&c) {
			value := s.String()
			if strings.HasSuffix(s.Path, ".password") && value != "" {
				value = "(set)"
			}
			say(stdout, "%-24s %-20s %s\n", s.Path, value, s.Env())
		}
		say(stdout, "%d routes, %d throttles, %d cron entries\nthe settings are good\n",
			len(c.Routes), len(c.Throttles), len(c.Crons))
		return nil
	}
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "show the version",
		Args:  cobra.NoArgs,
		Run:   func(cmd *cobra.Command, _ []string) { say(cmd.OutOrStdout(), "%s", versionLine()) },
	}
}

// versionLine names the build, the compiler and the platform.
func versionLine() string {
	return fmt.Sprintf("broker %s %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion is what the linker was told, else the revision that the build was made from.
func buildVersion() string {
	if version != "unknown" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return version
}
