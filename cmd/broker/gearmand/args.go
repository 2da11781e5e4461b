package gearmand

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// option is one option of gearmand's command line.
type option struct {
	long  string
	short byte // 0: none
	arg   string
	about string
}

// options lists all options: options with an effect, options without an effect, and the options of queue plug-ins,
// which our own store replaces.
var options = []option{
	{"backlog", 'b', "N", "accepted; the system's limit is used"},
	{"daemon", 'd', "", "run in the background"},
	{"exceptions", 0, "", "send exceptions also to clients that did not request them"},
	{"file-descriptors", 'f', "N", "accepted; the system's limit is used"},
	{"help", 'h', "", "show this help"},
	{"job-retries", 'j', "N", "attempts of a job before it is removed; 0: no limit (newer gearmand: no retries)"},
	{"job-handle-prefix", 0, "TEXT", "prefix of job handles; default H:HOSTNAME"},
	{"hashtable-buckets", 0, "N", "accepted; must be greater than 0"},
	{"keepalive", 0, "", "accepted; always on"},
	{"keepalive-idle", 0, "SECONDS", "accepted"},
	{"keepalive-interval", 0, "SECONDS", "accepted"},
	{"keepalive-count", 0, "N", "accepted"},
	{"log-file", 'l', "FILE", "log file, stderr or none; SIGHUP reopens the file"},
	{"listen", 'L', "ADDRESS", "address or host name to listen on; default: any address"},
	{"pid-file", 'P', "FILE", "file for the process id"},
	{"protocol", 'r', "NAME", "http: serve gearmand's HTTP protocol too, without TLS"},
	{"http-port", 0, "PORT", "port of the HTTP protocol; default 8080"},
	{"round-robin", 'R', "", "accepted; functions of equal priority always take turns"},
	{
		"memory", 0, "",
		"keep jobs in memory only; default: in the broker's own store on disk (BROKER_DATA names its folder)",
	},
	{"queue-type", 'q', "TYPE", "accepted; the broker's own store takes the place of all plug-ins"},
	{"config-file", 0, "FILE", "file with more options, separated by white space"},
	{"syslog", 0, "", "log to syslog"},
	{"coredump", 0, "", "accepted"},
	{"threads", 't', "N", "threads that serve connections; 0: one per processor"},
	{"user", 'u', "USER", "switch to this user after binding the port"},
	{"verbose", 0, "LEVEL", "log level: FATAL, ALERT, CRITICAL, ERROR, WARNING, NOTICE, INFO or DEBUG"},
	{"version", 'V', "", "show the version"},
	{"worker-wakeup", 'w', "N", "sleeping workers to wake for a job; 0: all; default: one per waiting job"},
	{"port", 'p', "PORT", "port to listen on; default: GEARMAND_PORT or 4730"},
	{"ssl", 0, "", "accept TLS connections only"},
	{"ssl-ca-file", 0, "FILE", "CA certificates that verify client certificates, in PEM"},
	{"ssl-certificate", 0, "FILE", "server certificate, in PEM"},
	{"ssl-key", 0, "FILE", "private key, in PEM"},
	{"check-args", 0, "", ""},
	{"libmemcached-servers", 0, "LIST", ""},
	{"libmemcached-prefix", 0, "TEXT", ""},
	{"libsqlite3-db", 0, "FILE", "with -q libsqlite3: the store is created next to this file"},
	{"libsqlite3-table", 0, "TEXT", ""},
	{"store-queue-on-shutdown", 0, "", ""},
	{"libpq-conninfo", 0, "TEXT", ""},
	{"libpq-table", 0, "TEXT", ""},
	{"redis-server", 0, "HOST", ""},
	{"redis-port", 0, "PORT", ""},
	{"redis-password", 0, "TEXT", ""},
	{"redis-prefix", 0, "TEXT", ""},
	{"mysql-host", 0, "HOST", ""},
	{"mysql-port", 0, "PORT", ""},
	{"mysql-user", 0, "TEXT", ""},
	{"mysql-password", 0, "TEXT", ""},
	{"mysql-db", 0, "TEXT", ""},
	{"mysql-table", 0, "TEXT", ""},
	{"libdrizzle-host", 0, "HOST", ""},
	{"libdrizzle-port", 0, "PORT", ""},
	{"libdrizzle-uds", 0, "FILE", ""},
	{"libdrizzle-user", 0, "TEXT", ""},
	{"libdrizzle-password", 0, "TEXT", ""},
	{"libdrizzle-db", 0, "TEXT", ""},
	{"libdrizzle-table", 0, "TEXT", ""},
	{"libdrizzle-mysql", 0, "", ""},
	{"libtokyocabinet-file", 0, "FILE", ""},
	{"libtokyocabinet-optimize", 0, "", ""},
}

// values are the options given, by long name; those without an argument have an empty value.
type values map[string]string

func (g values) has(name string) bool {
	_, ok := g[name]
	return ok
}

// parse parses options like gearmand: no abbreviations, no option twice; short options may be bundled and followed by
// their argument. Words that are not options are passed to stray; if stray is nil, they are an error.
func parse(args []string, stray func(word string)) (values, error) {
	g := make(values)
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		var err error
		switch {
		case strings.HasPrefix(word, "--") && len(word) > 2:
			args, err = g.long(word[2:], args)
		case strings.HasPrefix(word, "-") && len(word) > 1 && word != "--":
			args, err = g.bundle(word[1:], args)
		case stray != nil:
			stray(word)
		case word != "--":
			err = fmt.Errorf("unrecognised option '%s'", word)
		}
		if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// long parses an option by its long name and returns the remaining words.
func (g values) long(word string, args []string) ([]string, error) {
	name, value, hasValue := strings.Cut(word, "=")
	o, ok := findOption(func(o option) bool { return o.long == name })
	switch {
	case !ok:
		return nil, fmt.Errorf("unrecognised option '--%s'", word)
	case hasValue && value == "":
		return nil, fmt.Errorf("the argument for option '--%s' should follow immediately after the equal sign", name)
	case o.arg == "" && hasValue:
		return nil, fmt.Errorf("option '--%s' does not take any arguments", name)
	case o.arg != "" && !hasValue:
		if len(args) == 0 {
			return nil, missingArgument(o)
		}
		value, args = args[0], args[1:]
	}
	return args, g.add(o, value)
}

// bundle parses short options: flags in a row; the last may take an argument, directly behind it or as the next word.
func (g values) bundle(letters string, args []string) ([]string, error) {
	for letters != "" {
		o, ok := findOption(func(o option) bool { return o.short == letters[0] })
		if !ok {
			return nil, fmt.Errorf("unrecognised option '-%s'", letters)
		}
		letters = letters[1:]
		if o.arg == "" {
			if err := g.add(o, ""); err != nil {
				return nil, err
			}
			continue
		}
		value := strings.TrimPrefix(letters, "=")
		if letters == "" {
			if len(args) == 0 {
				return nil, missingArgument(o)
			}
			value, args = args[0], args[1:]
		}
		return args, g.add(o, value)
	}
	return args, nil
}

func (g values) add(o option, value string) error {
	if g.has(o.long) {
		return fmt.Errorf("option '--%s' cannot be specified more than once", o.long)
	}
	g[o.long] = value
	return nil
}

func missingArgument(o option) error {
	return fmt.Errorf("the required argument for option '--%s' is missing", o.long)
}

func findOption(is func(option) bool) (option, bool) {
	for _, o := range options {
		if is(o) {
			return o, true
		}
	}
	return option{}, false
}

// readArgs reads the command line, then the configuration file that it names.
func readArgs(args []string) (values, error) {
	o, err := parse(args, nil)
	if err != nil {
		return nil, err
	}
	path, explicit := o["config-file"]
	text, err := os.ReadFile(cmp.Or(path, defaultConfig))
	switch {
	case err == nil:
		file, err := parse(configFileArgs(string(text)), func(string) {})
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

// check validates the values, so that --check-args reports the same errors as a start.
func (g values) check() error {
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
	if level, ok := g["verbose"]; ok && levels[level] == "" {
		return errors.New("Invalid value for --verbose supplied") //nolint:staticcheck // ST1005: gearmand's own words
	}
	return nil
}

// number is the value of an option that check has validated; 0 if the option was not given.
func (g values) number(name string) int {
	n, err := strconv.Atoi(g[name])
	if err != nil {
		return 0
	}
	return n
}
