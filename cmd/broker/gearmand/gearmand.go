package gearmand

import (
	"cmp"
	"io"
	"os"

	"github.com/rs/zerolog"

	"broker/cmd/broker/cli"
	"broker/config"
)

// The version of gearmand that this command replaces, and the paths of gearmand's files.
const (
	replacedVersion = "1.1.20"
	defaultConfig   = "/etc/gearmand.conf"
	defaultLogFile  = "/var/log/gearmand.log"
	defaultPort     = "4730"

	// bindRetry is about the time for which gearmand retries while its port is in use.
	bindRetry = "20s"
)

// Launch holds the parameters of the broker from a command line.
type Launch struct {
	Config      config.Config
	Log         zerolog.Logger
	Verbosity   string           // reply to the text command verbose
	HTTPAddress config.Addresses // of gearmand's HTTP protocol
	OnBound     func() error     // called once the addresses are bound, before anything else is touched
	OnReady     func() error     // called once clients are served
	ReopenLog   func() error     // called when the log was rotated
}

// Main runs the broker with gearmand's command line and returns the exit code. run serves until a shutdown is
// requested.
func Main(args []string, stdout, stderr io.Writer, version string, run func(Launch) error) int {
	o, err := readArgs(args)
	switch {
	case err != nil:
		cli.Say(stderr, "gearmand: %v\n", err)
		return cli.ExitFailed
	case o.has("help"):
		help(stdout)
		return cli.ExitOK
	case o.has("version"):
		cli.Say(stdout, "\ngearmand %s - broker %s\n", replacedVersion, version)
		return cli.ExitOK
	case o.has("check-args"):
		return cli.ExitOK
	}
	g := &launcher{options: o}
	if err := g.launch(run); err != nil {
		cli.Say(stderr, "gearmand: %v\n", err)
		return cli.ExitFailed
	}
	return cli.ExitOK
}

func help(w io.Writer) {
	cli.Say(w, "usage: gearmand [OPTIONS]\n\n")
	for _, o := range options {
		if o.about == "" {
			continue
		}
		name := "     --" + o.long
		if o.short != 0 {
			name = " -" + string(o.short) + ", --" + o.long
		}
		cli.Say(w, "%-34s %s\n", name+" "+o.arg, o.about)
	}
	cli.Say(w, "\nThe connection options of gearmand's queue plug-ins are accepted and ignored.\n")
}

// launcher starts a broker with gearmand's command line.
type launcher struct {
	options values
	config  config.Config
	log     zerolog.Logger
	logFile *logFile // nil: the log is not written to a file
}

// launch serves until a shutdown is requested; with --daemon, in the background.
func (g *launcher) launch(run func(Launch) error) error {
	o := g.options
	var err error
	if g.config, err = g.settings(); err != nil {
		return err
	}
	httpAddress, err := g.httpAddress()
	if err != nil {
		return err
	}
	if name, ok := o["user"]; ok {
		if _, err := findUser(name); err != nil {
			return err
		}
	}
	if err := g.makeData(); err != nil {
		return err
	}
	if o.has("daemon") && !IsDaemon() {
		return startDaemon()
	}
	if err := g.openLog(); err != nil {
		return err
	}
	if path := o["pid-file"]; path != "" {
		if err := writePID(path); err != nil {
			return err
		}
		defer func() { _ = os.Remove(path) }() // after --user, the folder may not be writable; the number is stale then
	}
	g.logQueue()
	return run(Launch{
		Config: g.config, Log: g.log, Verbosity: cmp.Or(o["verbose"], "ERROR"), HTTPAddress: httpAddress,
		OnBound: g.dropPrivileges, OnReady: daemonReady, ReopenLog: g.reopenLog,
	})
}
