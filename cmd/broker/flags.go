package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/cmd/broker/process"
	"broker/config"
)

// flagSetting is a flag for one setting, or for several with spaces between them.
type flagSetting struct{ flag, settings, value, about string }

// set records the value of the flag for its settings.
func (f flagSetting) set(flags map[string]string, value string) {
	for _, setting := range strings.Fields(f.settings) {
		flags[setting] = value
	}
}

// flagSettings maps flags to settings, in the order of the help.
var flagSettings = slices.Concat([]flagSetting{
	{"data", "data", "DIR", "folder of the store"},
	{"durability", "durability", "sync|relaxed|none", "when to reply: once on disk, before, or memory only"},
}, protocolFlags(), []flagSetting{
	{"http", "http.listen", "ADDR", "address of the console, the API and the metrics"},
	{"node", "cluster.node", "ID", "id of this node in a cluster"},
	{"cluster", "cluster.members", "LIST", "nodes of the cluster: n1=host:port,n2=host:port,n3=host:port"},
	{"join", "cluster.join", "bool", "join an existing cluster, after broker cluster add"},
	{"password", "faktory.password http.password", "PW", "password for Faktory and HTTP clients"},
})

// protocolFlags are the flags for the addresses of the protocols. The first one says what an address is.
func protocolFlags() (flags []flagSetting) {
	c := config.Default()
	for i, p := range c.WireProtocols() {
		about := "address for " + p.Title + " clients"
		switch {
		case i == 0:
			about += ": host:port, unix:/path or off"
		case p.Replaces != "":
			about += ", in place of " + p.Replaces
		}
		flags = append(flags, flagSetting{p.Name, p.Name + ".listen", "ADDR", about})
	}
	return flags
}

// settingFlags adds the flags of flagSettings to a command. It returns the sources of the settings, which are complete
// once the command line is parsed.
func settingFlags(cmd *cobra.Command) func() config.Sources {
	flags := cmd.Flags()
	file := &textFlag{kind: "FILE"}
	flags.Var(file, "config", "settings file, in TOML")
	for _, f := range flagSettings {
		flags.Var(&textFlag{kind: f.value}, f.flag, f.about)
	}
	flags.Lookup("join").NoOptDefVal = "true"
	cmd.Flags().SortFlags = false
	cmd.Long += "\n\nThe settings file and the environment can set every setting; check-config shows the variable names.\n" +
		"Flags override the environment, which overrides the file."
	return func() config.Sources {
		s := config.Sources{File: file.text, Env: os.Environ(), Flags: make(map[string]string)}
		for _, f := range flagSettings {
			if given := flags.Lookup(f.flag); given.Changed {
				f.set(s.Flags, given.Value.String())
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
func loadSettings(sources config.Sources) (process.Settings, error) {
	c, err := process.ReadSettings(sources)
	if err != nil {
		return c, cli.Failed(fmt.Errorf("invalid settings:\n%w", err))
	}
	return c, nil
}

// checkConfigCommand reads the settings like serve and shows them.
func checkConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check-config",
		Short: "check the settings and show them",
		Long:  "Read the settings like serve, report every problem, and show each setting with its environment variable.",
		Args:  cobra.NoArgs,
	}
	sources := settingFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadSettings(sources())
		if err != nil {
			return err
		}
		stdout := cmd.OutOrStdout()
		for _, s := range config.Settings(&c.Config) {
			value := s.String()
			if c.IsSecret(s.Path) && value != "" {
				value = "(set)"
			}
			cli.Say(stdout, "%-27s %-18s %s\n", s.Path, value, s.Env())
		}
		for _, text := range c.OldNames() {
			cli.Say(stdout, "%s\n", text)
		}
		cli.Say(stdout, "%d routes, %d throttles, %d cron entries\nsettings are valid\n",
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
		Run:   func(cmd *cobra.Command, _ []string) { cli.Say(cmd.OutOrStdout(), "%s", versionLine()) },
	}
}

// versionLine names the build, the compiler and the platform.
func versionLine() string {
	return fmt.Sprintf("broker %s %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion is the version that the linker set, or the revision of the build.
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
