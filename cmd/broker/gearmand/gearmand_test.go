package gearmand

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"broker/config"
)

// runMain runs a command line without serving clients.
func runMain(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(args, &out, &errs, "test", func(Launch) error { return errors.New("started") })
	return code, out.String(), errs.String()
}

// setting is the value of a setting.
func setting(c *config.Config, path string) string {
	for _, s := range config.Settings(c) {
		if s.Path == path {
			return s.String()
		}
	}
	return "no setting " + path
}

// Exit codes and messages are those of gearmand 1.1.20 for the same command lines.
func TestGearmandArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--config-file=" + path
	}
	for _, test := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"", 0, ""},
		{"-h", 0, ""},
		{"--version", 0, ""},
		{"-V", 0, ""},
		{"foo", 1, "unrecognised option 'foo'"},
		{"-- foo", 1, "unrecognised option 'foo'"},
		{"--log=stderr", 1, "unrecognised option '--log=stderr'"},
		{"--HELP", 1, "unrecognised option '--HELP'"},
		{"-v", 1, "unrecognised option '-v'"},
		{"--verbose BAD", 1, "Invalid value for --verbose supplied"},
		{"--verbose=info", 1, "Invalid value for --verbose supplied"},
		{"--verbose", 1, "the required argument for option '--verbose' is missing"},
		{"-l", 1, "the required argument for option '--log-file' is missing"},
		{"--port=1 --port=2", 1, "option '--port' cannot be specified more than once"},
		{"-p 1 -p2", 1, "option '--port' cannot be specified more than once"},
		{"--daemon=yes", 1, "option '--daemon' does not take any arguments"},
		{"-dR", 0, ""},
		{"-dRp4731", 0, ""},
		{"-b 10 -f 100 -t 2 -R --hashtable-buckets 100 --coredump --keepalive --keepalive-idle 5", 0, ""},
		{"--keepalive-interval 3 --keepalive-count 2", 0, ""},
		{"--hashtable-buckets=0", 1, "hashtable-buckets has to be greater than 0"},
		{"--threads=x", 1, "the argument ('x') for option '--threads' is invalid"},
		{"--worker-wakeup=x", 1, "the argument ('x') for option '--worker-wakeup' is invalid"},
		{"--worker-wakeup=300 --job-retries=300", 0, ""},
		{"--job-retries=-1", 0, ""},
		{"--config-file=/nowhere/g.conf", 1, "Could not open configuration file."},
		{write("good", "--port=29998\n  --verbose  DEBUG\n"), 0, ""},
		{write("over", "--port=29998\n") + " --port=29997", 0, ""},
		{write("stray", "# comment --port=1\nport=abc foo\n"), 0, ""},
		{write("unknown", "--nosuch\n"), 1, "unrecognised option '--nosuch'"},
		{write("bad", "--verbose BAD\n"), 1, "Invalid value for --verbose supplied"},
		{write("twice", "--port 29998 --port 29997\n"), 1, "option '--port' cannot be specified more than once"},
		{"-q libsqlite3 --libsqlite3-db=/x --libsqlite3-table t --store-queue-on-shutdown", 0, ""},
		{"--redis-server a --redis-port 1 --mysql-host b --libpq-conninfo c --libmemcached-servers d", 0, ""},
		{"-q nosuch", 0, ""},
		{"--memory -q builtin", 0, ""},
		{"-r http --http-port 8080", 0, ""},
		{"-rhttp", 0, ""},
		{"--protocol=http --http-port=abc", 0, ""},
		{"-r xyz", 0, ""},
		{"-r http --protocol http", 1, "option '--protocol' cannot be specified more than once"},
		{"--protocol=", 1, "the argument for option '--protocol' should follow immediately after the equal sign"},
		{"--exceptions=", 1, "the argument for option '--exceptions' should follow immediately after the equal sign"},
		{"--job-handle-prefix=" + strings.Repeat("x", 64), 0, ""},
		{"-u nobodyx -P /nowhere/x --listen=nohost.invalid", 0, ""},
	} {
		code, _, stderr := runMain(append([]string{"--check-args"}, strings.Fields(test.args)...)...)
		if code != test.code || !strings.Contains(stderr, test.stderr) {
			t.Errorf("gearmand --check-args %s: exit %d, %q; want %d, %q", test.args, code, stderr, test.code,
				test.stderr)
		}
	}
	if _, stdout, _ := runMain("--version"); !strings.HasPrefix(stdout, "\ngearmand 1.1.20 - ") {
		t.Errorf("version: %q", stdout)
	}
	if _, stdout, _ := runMain("--help"); !strings.Contains(stdout, "-p, --port PORT") {
		t.Errorf("help: %s", stdout)
	}
}

// Not parallel: it changes the environment.
func TestGearmandOptionsAsSettings(t *testing.T) {
	for _, test := range []struct {
		args    string
		env     map[string]string
		setting string
		want    string
	}{
		{"", nil, "gearman.listen", ":4730"},
		{"", nil, "durability", "sync"},
		{"-q builtin", nil, "durability", "sync"},
		{"--memory", nil, "durability", "none"},
		{"--memory -q redis", nil, "durability", "none"},
		{"", map[string]string{"BROKER_DURABILITY": "none"}, "durability", "none"},
		{"", nil, "workq.listen", "off"},
		{"", nil, "http.listen", "off"},
		{"", map[string]string{"BROKER_HTTP_LISTEN": "127.0.0.1:7420"}, "http.listen", "127.0.0.1:7420"},
		{"-L ::1 -p 1", nil, "gearman.listen", "[::1]:1"},
		{"-L localhost", map[string]string{"GEARMAND_PORT": "5"}, "gearman.listen", "localhost:5"},
		{"-p 6", map[string]string{"GEARMAND_PORT": "5"}, "gearman.listen", ":6"},
		{"-j 3", nil, "gearman.job_retries", "3"},
		{"-j -1", nil, "gearman.job_retries", "0"},
		{"", nil, "gearman.worker_wakeup", "0"},
		{"-w 0", nil, "gearman.worker_wakeup", "-1"},
		{"-w 2", nil, "gearman.worker_wakeup", "2"},
		{"", nil, "gearman.exceptions", "false"},
		{"--exceptions", nil, "gearman.exceptions", "true"},
		{"--job-handle-prefix X", nil, "gearman.handle_prefix", "X"},
		{"--job-handle-prefix " + strings.Repeat("x", 63), nil, "gearman.handle_prefix", strings.Repeat("x", 63)},
		{"-r http --http-port 8080", nil, "http.listen", "off"},
		{"-t 3", nil, "event_loops", "3"},
		{"--verbose WARNING", nil, "log.level", "warn"},
		{"-q redis", nil, "durability", "sync"},
		{"-q redis", map[string]string{"BROKER_DURABILITY": "relaxed"}, "durability", "relaxed"},
		{"-q redis", map[string]string{"BROKER_DATA": "/somewhere"}, "data", "/somewhere"},
		{"-q libsqlite3 --libsqlite3-db=/x/jobs.db", nil, "data", "/x/jobs.db.broker"},
	} {
		t.Run(test.args+" "+test.setting, func(t *testing.T) {
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			o, err := readArgs(strings.Fields(test.args))
			if err != nil {
				t.Fatal(err)
			}
			g := launcher{options: o}
			c, err := g.settings()
			if err != nil {
				t.Fatal(err)
			}
			if got := setting(&c, test.setting); got != test.want {
				t.Errorf("%s is %s, want %s", test.setting, got, test.want)
			}
		})
	}
	for _, args := range []string{"-p x", "-q nosuch", "--ssl", "--job-handle-prefix " + strings.Repeat("x", 64)} {
		o, err := readArgs(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&launcher{options: o}).settings(); err == nil {
			t.Errorf("%s was accepted", args)
		}
	}
}

func TestGearmandHTTPAddress(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ args, want, err string }{
		{"", "off", ""},
		{"--http-port 81", "off", ""},
		{"-r http", ":8080", ""},
		{"-r http --http-port 81 -L ::1", "[::1]:81", ""},
		{"-r http --http-port abc", "off", "--http-port"},
		{"-r xyz", "off", "Unknown protocol module : xyz"},
		{"-r HTTP", "off", "Unknown protocol module : HTTP"},
	} {
		o, err := readArgs(strings.Fields(test.args))
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&launcher{options: o}).httpAddress()
		if got.String() != test.want || (err == nil) != (test.err == "") ||
			err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %q, %v; want %q, %q", test.args, got, err, test.want, test.err)
		}
	}
}

// Not parallel: it changes the environment.
func TestGearmandRetriesItsPortForTwentySeconds(t *testing.T) {
	g := &launcher{options: values{}}
	for _, want := range []time.Duration{20 * time.Second, 0} {
		if c, err := g.settings(); err != nil || c.BindRetry != want {
			t.Errorf("%v, %v, not %v", c.BindRetry, err, want)
		}
		t.Setenv("BROKER_BIND_RETRY", "0s") // next time
	}
}

func TestQueueFileThatIsNotReadIsNamedWithItsImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, log := filepath.Join(dir, "gearman.db"), filepath.Join(dir, "log")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	warned := func() bool {
		_ = os.Remove(log) // of the run before
		code, _, errs := runMain("-q", "libsqlite3", "--libsqlite3-db", db, "-l", log)
		if !strings.Contains(errs, "started") {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "file="+db) && strings.Contains(string(text), importHint)
	}
	if warned() {
		t.Error("a warning without a file")
	}
	write(db, "SQLite format 3")
	if !warned() {
		t.Error("no warning of a file with jobs")
	}
	write(filepath.Join(db+".broker", "FORMAT"), "1")
	if warned() {
		t.Error("a warning beside a store")
	}
}
