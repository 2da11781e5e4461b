package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/config"
)

// The version of gearmand that this command replaces, and where gearmand looks for its files.
const (
	gearmandVersion = "1.1.20"
	gearmandConfig  = "/etc/gearmand.conf"
	gearmandLogFile = "/var/log/gearmand.log"
	gearmandPort    = "4730"

	// gearmandBindRetry is about how long gearmand retries while its port is in use.
	gearmandBindRetry = "20s"
)

// gearmandLevels maps the values of --verbose to our log levels.
var gearmandLevels = map[string]string{
	"FATAL": "error", "ALERT": "error", "CRITICAL": "error", "ERROR": "error",
	"WARNING": "warn", "NOTICE": "info", "INFO": "info", "DEBUG": "debug",
}

// gearmandQueues are the plug-ins that -q accepts.
var gearmandQueues = []string{
	"libsqlite3", "libmemcached", "libpq", "postgres", "redis", "mysql", "libdrizzle", "drizzle", "libtokyocabinet",
}

// gearmandSubcommand makes gearmandCommand a command of broker.
func gearmandSubcommand() *cobra.Command {
	return &cobra.Command{
		Use:                "gearmand",
		Short:              "serve Gearman clients with gearmand's command line; so does a link of that name",
		DisableFlagParsing: true, // parseGearmand follows gearmand's rules
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := gearmandCommand(args, cmd.OutOrStdout(), cmd.ErrOrStderr()); code != cli.ExitOK {
				return &cli.ExitError{Code: code}
			}
			return nil
		},
	}
}

// gearmandCommand runs the broker with gearmand's command line.
func gearmandCommand(args []string, stdout, stderr io.Writer) int {
	o, err := readGearmandArgs(args)
	switch {
	case err != nil:
		say(stderr, "gearmand: %v\n", err)
		return cli.ExitFailed
	case o.has("help"):
		gearmandHelp(stdout)
		return cli.ExitOK
	case o.has("version"):
		say(stdout, "\ngearmand %s - broker %s\n", gearmandVersion, buildVersion())
		return cli.ExitOK
	case o.has("check-args"):
		return cli.ExitOK
	}
	g := &gearmandProcess{options: o}
	if err := g.run(); err != nil {
		say(stderr, "gearmand: %v\n", err)
		return cli.ExitFailed
	}
	return cli.ExitOK
}

func gearmandHelp(w io.Writer) {
	say(w, "usage: gearmand [OPTIONS]\n\n")
	for _, o := range gearmandOptions {
		if o.about == "" {
			continue
		}
		name := "     --" + o.long
		if o.short != 0 {
			name = " -" + string(o.short) + ", --" + o.long
		}
		say(w, "%-34s %s\n", name+" "+o.arg, o.about)
	}
	say(w, "\nThe connection options of gearmand's queue plug-ins are accepted and ignored.\n")
}

// readGearmandArgs reads the command line, then the file that it names.
func readGearmandArgs(args []string) (gearmandValues, error) {
	o, err := parseGearmand(args, nil)
	if err != nil {
		return nil, err
	}
	path, explicit := o["config-file"]
	text, err := os.ReadFile(cmp.Or(path, gearmandConfig))
	switch {
	case err == nil:
		file, err := parseGearmand(configFileArgs(string(text)), func(string) {})
		if err != nil {
			return nil, err
		}
		for name, value := range file {
			if !o.has(name) {
				o[name] = value
			}
		}
	case explicit:
		return nil, errors.New("Could not open configuration file.") //nolint:staticcheck // ST1005: gearmand's own words
	}
	return o, o.check()
}

// configFileArgs splits a file of options into words; lines that start with # are ignored.
func configFileArgs(text string) []string {
	var words []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			words = append(words, strings.Fields(line)...)
		}
	}
	return words
}

// check validates the values, so that --check-args finds what a start would find.
func (g gearmandValues) check() error {
	for _, name := range []string{
		"backlog", "file-descriptors", "job-retries", "hashtable-buckets", "keepalive-idle", "keepalive-interval",
		"keepalive-count", "threads", "worker-wakeup",
	} {
		if text, ok := g[name]; ok {
			if _, err := strconv.ParseInt(text, 10, 32); err != nil {
				return fmt.Errorf("the argument ('%s') for option '--%s' is invalid", text, name)
			}
		}
	}
	if text, ok := g["hashtable-buckets"]; ok && g.number("hashtable-buckets") <= 0 {
		return fmt.Errorf("hashtable-buckets has to be greater than 0, not %s", text)
	}
	if level, ok := g["verbose"]; ok && gearmandLevels[level] == "" {
		return errors.New("Invalid value for --verbose supplied") //nolint:staticcheck // ST1005: gearmand's own words
	}
	return nil
}

// number is the value of an option that check has validated; 0 if the option was not given.
func (g gearmandValues) number(name string) int {
	n, err := strconv.Atoi(g[name])
	if err != nil {
		return 0
	}
	return n
}

// gearmandProcess is a broker started with gearmand's command line.
type gearmandProcess struct {
	options gearmandValues
	process process
	log     zerolog.Logger
	logFile *logFile // nil: the log is not written to a file
}

// run serves until a shutdown is requested; with --daemon, in the background.
func (g *gearmandProcess) run() error {
	o := g.options
	c, err := g.config()
	if err != nil {
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
	if o.has("daemon") && !isDaemon() {
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
	g.process = process{
		config: c, log: g.log, shutdowns: make(chan shutdown, 1), verbosity: cmp.Or(o["verbose"], "ERROR"),
		clientCertOptional: true, gearmanHTTP: httpAddress, onBound: g.dropPrivileges, onReady: daemonReady,
	}
	g.watchSignals()
	g.logQueue()
	return g.process.run()
}

// watchSignals handles gearmand's signals.
func (g *gearmandProcess) watchSignals() {
	g.process.watchSignals(map[os.Signal]func(){
		syscall.SIGTERM: func() { g.process.requestShutdown(shutdown{}) },
		syscall.SIGINT:  func() { g.process.requestShutdown(shutdown{}) },
		syscall.SIGUSR1: func() { g.process.requestShutdown(shutdown{graceful: true}) },
		syscall.SIGHUP: func() {
			if err := g.reopenLog(); err != nil {
				g.log.Error().Err(err).Msg("log goes on in the old file")
			}
			_ = g.process.reload() // it has logged what is wrong
		},
	})
}

// config translates the options to our settings. Other settings can be set in the environment.
func (g *gearmandProcess) config() (config.Config, error) {
	o := g.options
	flags := map[string]string{
		"gearman.listen":     net.JoinHostPort(o["listen"], g.port()),
		"gearman.exceptions": strconv.FormatBool(o.has("exceptions")),
		"durability":         "none",
		"log.level":          gearmandLevels[cmp.Or(o["verbose"], "ERROR")],
		"bind_retry":         cmp.Or(os.Getenv("BROKER_BIND_RETRY"), gearmandBindRetry),
	}
	if o.has("job-handle-prefix") {
		flags["gearman.handle_prefix"] = o["job-handle-prefix"]
	}
	// Released versions of gearmand take 0 for no limit; newer ones take -1 for it.
	flags["gearman.job_retries"] = strconv.Itoa(max(0, o.number("job-retries")))
	if o.has("worker-wakeup") {
		flags["gearman.worker_wakeup"] = strconv.Itoa(workerWakeup(o.number("worker-wakeup")))
	}
	if o.has("threads") {
		flags["event_loops"] = strconv.Itoa(max(0, o.number("threads")))
	}
	if err := g.queueSettings(flags); err != nil {
		return config.Config{}, err
	}
	if o.has("ssl") {
		flags["gearman.tls_cert"] = cmp.Or(os.Getenv("GEARMAND_SERVER_PEM"), o["ssl-certificate"])
		flags["gearman.tls_key"] = cmp.Or(os.Getenv("GEARMAND_SERVER_KEY"), o["ssl-key"])
		flags["gearman.tls_client_ca"] = cmp.Or(os.Getenv("GEARMAND_CA_CERTIFICATE"), o["ssl-ca-file"])
		if flags["gearman.tls_cert"] == "" || flags["gearman.tls_key"] == "" {
			return config.Config{}, errors.New("--ssl needs --ssl-certificate and --ssl-key")
		}
	}
	env := []string{"BROKER_WORKQ_LISTEN=off", "BROKER_FAKTORY_LISTEN=off", "BROKER_HTTP_LISTEN=off"}
	return config.Load(config.Sources{Env: append(env, os.Environ()...), Flags: flags})
}

// port is that of the option, unless it is the default and the environment names another.
func (g *gearmandProcess) port() string {
	port := cmp.Or(g.options["port"], gearmandPort)
	if env := os.Getenv("GEARMAND_PORT"); port == gearmandPort && env != "" {
		return env
	}
	return port
}

// workerWakeup translates gearmand's number: 0 wakes all workers there.
func workerWakeup(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}

// queueSettings chooses the store: none for builtin, our own for any plug-in.
func (g *gearmandProcess) queueSettings(flags map[string]string) error {
	kind := strings.ToLower(cmp.Or(g.options["queue-type"], "builtin"))
	if kind == "builtin" {
		return nil
	}
	if !slices.Contains(gearmandQueues, kind) {
		return fmt.Errorf("Error while initializing the queue : %s", g.options["queue-type"]) //nolint:staticcheck // ST1005: gearmand's own words
	}
	flags["durability"] = cmp.Or(os.Getenv("BROKER_DURABILITY"), "sync")
	data := os.Getenv("BROKER_DATA")
	switch {
	case data != "":
	case g.options["libsqlite3-db"] != "":
		data = g.options["libsqlite3-db"] + ".broker"
	case os.Geteuid() == 0:
		data = filepath.Join("/var/lib/broker", "gearmand-"+g.port())
	default:
		data = filepath.Join("data", "gearmand-"+g.port())
	}
	data, err := filepath.Abs(data)
	flags["data"] = data
	return err
}

// logQueue logs, at any log level, that our own store replaces a plug-in.
func (g *gearmandProcess) logQueue() {
	c := &g.process.config
	if c.Durability == "none" {
		return
	}
	line := g.log.Log().Str("queue_type", g.options["queue-type"]).Str("data", c.Data)
	var ignored []string
	for _, o := range gearmandOptions {
		if o.isPlugin() && g.options.has(o.long) {
			ignored = append(ignored, "--"+o.long)
		}
	}
	line.Strs("not_used", ignored).Msg("jobs are kept in the broker's own store in place of the queue plug-in")
}

// isPlugin reports whether the option configures a queue plug-in.
func (o gearmandOption) isPlugin() bool {
	return strings.HasPrefix(o.long, "lib") || strings.HasPrefix(o.long, "redis-") ||
		strings.HasPrefix(o.long, "mysql-") || o.long == "store-queue-on-shutdown"
}
