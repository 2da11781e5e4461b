package main

import (
	"fmt"
	"strings"
)

// gearmandOption is one option of gearmand's command line.
type gearmandOption struct {
	long  string
	short byte // 0: none
	arg   string
	about string
}

// gearmandOptions lists all options: those with an effect here, those accepted without one, and those of the queue plug-ins,
// which our own store replaces.
var gearmandOptions = []gearmandOption{
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
	{"queue-type", 'q', "TYPE", "builtin: jobs in memory; a plug-in's name: the broker's own store"},
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

// gearmandValues are the options given, by long name; those without an argument have an empty value.
type gearmandValues map[string]string

func (g gearmandValues) has(name string) bool {
	_, ok := g[name]
	return ok
}

// parseGearmand parses options as gearmand does: no abbreviations, no option twice; short options may be bundled and
// followed by their argument. Words that are not options are an error, unless stray is set: then they are passed to it.
func parseGearmand(args []string, stray func(word string)) (gearmandValues, error) {
	g := make(gearmandValues)
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
func (g gearmandValues) long(word string, args []string) ([]string, error) {
	name, value, hasValue := strings.Cut(word, "=")
	o, ok := findOption(func(o gearmandOption) bool { return o.long == name })
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
func (g gearmandValues) bundle(letters string, args []string) ([]string, error) {
	for letters != "" {
		o, ok := findOption(func(o gearmandOption) bool { return o.short == letters[0] })
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

func (g gearmandValues) add(o gearmandOption, value string) error {
	if g.has(o.long) {
		return fmt.Errorf("option '--%s' cannot be specified more than once", o.long)
	}
	g[o.long] = value
	return nil
}

func missingArgument(o gearmandOption) error {
	return fmt.Errorf("the required argument for option '--%s' is missing", o.long)
}

func findOption(is func(gearmandOption) bool) (gearmandOption, bool) {
	for _, o := range gearmandOptions {
		if is(o) {
			return o, true
		}
	}
	return gearmandOption{}, false
}
