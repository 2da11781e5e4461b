package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// version is set by the linker.
var version = "unknown"

// The exit codes. What a caller can mend on the command line is told apart from what went wrong.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// command is one word of the command line.
type command struct {
	name, about string
	run         func(args []string, stdout, stderr io.Writer) int
}

// commands are listed by help in this order.
func commands() []command {
	return []command{
		{"serve", "serve clients until TERM or INT", serveCommand},
		{"check-config", "check the settings, show those in force, serve nobody", checkConfigCommand},
		{"backup", "copy the store to a folder, while the broker runs or not", backupCommand},
		{"doctor", "say what a stopped store holds and whether it is sound", doctorCommand},
		{"gearmand", "serve Gearman clients, with gearmand's command line; so does a link of that name", gearmandCommand},
		{"version", "show the version", versionCommand},
		{"help", "show this", helpCommand},
	}
}

func main() {
	if filepath.Base(os.Args[0]) == "gearmand" {
		os.Exit(gearmandCommand(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(dispatch(os.Args[1:], os.Stdout, os.Stderr))
}

// dispatch runs the command that the first argument names.
func dispatch(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	for _, c := range commands() {
		if args[0] == c.name {
			return c.run(args[1:], stdout, stderr)
		}
	}
	switch args[0] {
	case "-h", "-help", "--help":
		return helpCommand(nil, stdout, stderr)
	case "-version", "--version":
		return versionCommand(nil, stdout, stderr)
	}
	say(stderr, "broker: no command %q\n", args[0])
	usage(stderr)
	return exitUsage
}

func usage(w io.Writer) {
	say(w, "usage: broker COMMAND [FLAGS]\n\n")
	for _, c := range commands() {
		say(w, "  %-13s %s\n", c.name, c.about)
	}
	say(w, "\nbroker COMMAND --help shows the flags of a command.\n")
}

// say writes to the terminal; when that is gone there is nobody to tell.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
