package gearmand

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"broker/config"
)

// levels maps the values of --verbose to our log levels.
var levels = map[string]string{
	"FATAL": "error", "ALERT": "error", "CRITICAL": "error", "ERROR": "error",
	"WARNING": "warn", "NOTICE": "info", "INFO": "info", "DEBUG": "debug",
}

// plugins are the plug-ins that -q accepts.
var plugins = []string{
	"libsqlite3", "libmemcached", "libpq", "postgres", "redis", "mysql", "libdrizzle", "drizzle", "libtokyocabinet",
}

// settings translates the options to our settings. Other settings can be set in the environment.
func (g *launcher) settings() (config.Config, error) {
	o := g.options
	flags := map[string]string{
		"gearman.listen":     net.JoinHostPort(o["listen"], g.port()),
		"gearman.exceptions": strconv.FormatBool(o.has("exceptions")),
		"log.level":          levels[cmp.Or(o["verbose"], "ERROR")],
		"bind_retry":         cmp.Or(os.Getenv("BROKER_BIND_RETRY"), bindRetry),
	}
	if o.has("job-handle-prefix") {
		flags["gearman.handle_prefix"] = o["job-handle-prefix"]
	}
	// In released versions of gearmand 0 means no limit; in newer versions -1 does.
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
	return config.Load(config.Sources{Env: append(config.ListenOnly("gearman"), os.Environ()...), Flags: flags})
}

// port is the port of the option. If that is the default, an address in the environment overrides it.
func (g *launcher) port() string {
	port := cmp.Or(g.options["port"], defaultPort)
	if env := os.Getenv("GEARMAND_PORT"); port == defaultPort && env != "" {
		return env
	}
	return port
}

// workerWakeup translates gearmand's number, where 0 wakes all workers.
func workerWakeup(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}

// queueSettings chooses the store: none with --memory, else our own store for any plug-in.
func (g *launcher) queueSettings(flags map[string]string) error {
	kind := strings.ToLower(cmp.Or(g.options["queue-type"], "builtin"))
	if kind != "builtin" && !slices.Contains(plugins, kind) {
		return fmt.Errorf("Error while initializing the queue : %s", g.options["queue-type"]) //nolint:staticcheck // ST1005: gearmand's own words
	}
	if g.options.has("memory") {
		flags["durability"] = "none"
		return nil
	}
	flags["durability"] = cmp.Or(os.Getenv("BROKER_DURABILITY"), "sync")
	data := os.Getenv("BROKER_DATA")
	if data == "" && g.options["libsqlite3-db"] != "" {
		data = g.options["libsqlite3-db"] + ".broker"
	}
	if data == "" {
		var err error
		if data, err = defaultData(g.port()); err != nil && flags["durability"] != "none" {
			return err
		}
	}
	data, err := filepath.Abs(data)
	flags["data"] = data
	return err
}

// defaultData is the default folder of the jobs: a system folder for root, a home folder for other users. Its name
// contains the port, because a machine may run several servers.
func defaultData(port string) (string, error) {
	name := "gearmand-" + port
	if os.Geteuid() == 0 {
		return filepath.Join("/var/lib/gearman", name), nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "broker", name), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf(
			"no folder for the jobs: %w; name one with BROKER_DATA, or keep them in memory with --memory", err)
	}
	return filepath.Join(home, ".local", "state", "broker", name), nil
}

// makeData makes the folder of the jobs. Other users may enter the parent folders, which --user requires.
func (g *launcher) makeData() error {
	c := &g.config
	if c.Durability == "none" {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(c.Data), 0o755)
	if err == nil {
		err = os.Mkdir(c.Data, 0o700)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf(
			"no folder for the jobs: %w; name another with BROKER_DATA, or keep them in memory with --memory", err)
	}
	return nil
}

// logQueue logs where jobs are kept, whatever the log level.
func (g *launcher) logQueue() {
	c := &g.config
	if c.Durability == "none" {
		g.log.Log().Str(zerolog.LevelFieldName,
			zerolog.LevelWarnValue).Msg("jobs are kept in memory only, and are lost when this process ends")
		return
	}
	line := g.log.Log().Str(zerolog.LevelFieldName, zerolog.LevelInfoValue).Str("data", c.Data)
	var ignored []string
	for _, o := range options {
		if o.isPlugin() && g.options.has(o.long) {
			ignored = append(ignored, "--"+o.long)
		}
	}
	if kind := g.options["queue-type"]; kind != "" {
		line.Str("queue_type", kind).Strs("not_used", ignored)
	}
	line.Msg("jobs are kept in the broker's own store")
	if file := g.unreadQueue(); file != "" {
		g.log.Log().Str(zerolog.LevelFieldName, zerolog.LevelWarnValue).Str("file", file).Str("import", importHint).
			Msg("jobs in this queue file of gearmand are not read; start gearmand on it and import them")
	}
}

// importHint is how the jobs of a queue file are moved.
const importHint = "gearmand -p 4740 with the options of the queue, then broker import --from gearmand 127.0.0.1:4740"

// unreadQueue is the file of a queue plug-in that has content while the broker has no store yet; empty: there is none.
func (g *launcher) unreadQueue() string {
	if _, err := os.Stat(filepath.Join(g.config.Data, "FORMAT")); err == nil {
		return "" // the jobs may have been moved long ago
	}
	for _, option := range []string{"libsqlite3-db", "libtokyocabinet-file"} {
		file := g.options[option]
		if info, err := os.Stat(file); file != "" && err == nil && info.Size() > 0 {
			return file
		}
	}
	return ""
}

// isPlugin reports whether the option configures a queue plug-in.
func (o option) isPlugin() bool {
	return strings.HasPrefix(o.long, "lib") || strings.HasPrefix(o.long, "redis-") ||
		strings.HasPrefix(o.long, "mysql-") || o.long == "store-queue-on-shutdown"
}
