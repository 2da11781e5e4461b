package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"broker/config"
)

// flagSettings says which setting each flag sets, in the order of the help.
var flagSettings = []struct{ flag, setting, value, about string }{
	{"data", "data", "DIR", "folder of the store"},
	{"durability", "durability", "sync|relaxed|none", "when a positive reply may leave"},
	{"workq", "workq.listen", "ADDR", "where Workq clients are served: host:port, unix:/path or off"},
	{"gearman", "gearman.listen", "ADDR", "where Gearman clients are served"},
	{"faktory", "faktory.listen", "ADDR", "where Faktory clients are served"},
	{"http", "http.listen", "ADDR", "where health and metrics are served"},
	{"password", "faktory.password", "PW", "asked of Faktory and HTTP clients"},
}

// loadConfig reads the settings of a command that takes nothing but flags. The exit code is meant if ok is false.
func loadConfig(name string, args []string, stdout, stderr io.Writer) (c config.Config, code int, ok bool) {
	c, rest, code, ok := loadConfigAnd(name, args, stdout, stderr)
	if ok && len(rest) > 0 {
		say(stderr, "broker %s: unexpected argument %q\n", name, rest[0])
		return c, exitUsage, false
	}
	return c, code, ok
}

// loadConfigAnd reads the settings of a command; rest are the arguments that are no flags, which may stand anywhere.
func loadConfigAnd(name string, args []string, stdout, stderr io.Writer) (c config.Config, rest []string, code int, ok bool) {
	sources, rest, err := readFlags(name, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flagHelp(stdout, name)
		return c, nil, exitOK, false
	case err != nil:
		say(stderr, "broker %s: %v\n", name, err)
		return c, nil, exitUsage, false
	}
	if c, err = readSettings(sources); err != nil {
		say(stderr, "broker %s: bad settings:\n%v\n", name, err)
		return c, nil, exitFailed, false
	}
	return c, rest, exitOK, true
}

// readFlags finds where the settings of a command come from.
func readFlags(name string, args []string) (sources config.Sources, rest []string, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // said by ourselves
	sources = config.Sources{Env: os.Environ(), Flags: make(map[string]string)}
	flags.StringVar(&sources.File, "config", "", "")
	for _, f := range flagSettings {
		flags.Func(f.flag, "", func(text string) error {
			sources.Flags[f.setting] = text
			return nil
		})
	}
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return sources, nil, err
		}
		if args = flags.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return sources, rest, nil
}

func flagHelp(w io.Writer, name string) {
	usage := map[string]string{"backup": " DIR", "doctor": " [DIR]"}[name]
	say(w, "usage: broker %s [FLAGS]%s\n\n  --%-30s %s\n", name, usage, "config FILE", "settings in TOML")
	for _, f := range flagSettings {
		say(w, "  --%-30s %s\n", f.flag+" "+f.value, f.about)
	}
	say(w, "\nEvery setting can be set in the file, and in the environment by a name that check-config shows.\n"+
		"File, then environment, then flags: the last wins.\n")
}

// checkConfigCommand reads the settings as serve would and shows what is in force.
func checkConfigCommand(args []string, stdout, stderr io.Writer) int {
	c, code, ok := loadConfig("check-config", args, stdout, stderr)
	if !ok {
		return code
	}
	for _, s := range config.Settings(&c) {
		value := s.String()
		if strings.HasSuffix(s.Path, ".password") && value != "" {
			value = "(set)"
		}
		say(stdout, "%-24s %-20s %s\n", s.Path, value, s.Env())
	}
	say(stdout, "%d routes, %d throttles, %d cron entries\nthe settings are good\n",
		len(c.Routes), len(c.Throttles), len(c.Crons))
	return exitOK
}

func versionCommand(_ []string, stdout, _ io.Writer) int {
	say(stdout, "broker %s %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return exitOK
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

func helpCommand(_ []string, stdout, _ io.Writer) int {
	usage(stdout)
	return exitOK
}
