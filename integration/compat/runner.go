package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"broker/integration/server"
)

// atMost is how long one suite may run; one that needs longer hangs.
const atMost = 15 * time.Minute

// The original servers, and what their versions are read from.
const (
	gearmand   = "gearmand"
	beanstalkd = "beanstalkd"
	faktory    = "faktory"
)

// stubs stand in for libraries that only measure the coverage of the suites in Ruby, and for a name that Minitest 5
// has lost.
var stubs = map[string]string{
	"coveralls.rb": "require \"minitest\"\nmodule Coveralls; def self.wear!; end; end\n" +
		"module Minitest; class Unit; TestCase = Minitest::Test; end; end\n",
	"simplecov.rb": "module SimpleCov; def self.start(*); end; end\n",
}

var errNoCheckout = errors.New("not in the folder of the suites")

// runner runs suites.
type runner struct {
	root, suites, dir string
	binary, version   string // the broker
}

func newRunner(root, suites string) (*runner, error) {
	dir, err := os.MkdirTemp("", "broker-compat-")
	if err != nil {
		return nil, err
	}
	r := &runner{root: root, suites: suites, dir: dir}
	for name, text := range stubs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	if r.binary, err = server.Broker(dir); err != nil {
		return nil, errors.Join(err, r.close())
	}
	out, err := exec.Command(r.binary, "version").Output()
	if fields := strings.Fields(string(out)); err == nil && len(fields) > 1 {
		r.version = fields[1]
		return r, nil
	}
	return nil, errors.Join(fmt.Errorf("the version of %s: %w: %s", r.binary, err, out), r.close())
}

func (r *runner) close() error { return os.RemoveAll(r.dir) }

// suite runs a suite against the broker, and against the original server if that is installed.
func (r *runner) suite(s suite) (result, error) {
	got := result{Broker: r.version, Date: time.Now().UTC().Format(time.DateOnly)}
	folder := ""
	if s.shell != "" {
		folder = filepath.Join(r.suites, s.name)
		if _, err := os.Stat(folder); r.suites == "" || err != nil {
			return got, errNoCheckout
		}
		s.version = "git -C '" + folder + "' describe --tags --always"
	}
	version, err := r.output(s.version)
	if err != nil {
		return got, fmt.Errorf("its version: %w", err)
	}
	got.Version = strings.Join(strings.Fields(version), ", ")
	if got.Ours, err = r.play(s, folder, ""); err != nil {
		return got, err
	}
	if s.server == "" {
		return got, nil
	}
	original, missing := r.output(originalVersion[s.server])
	if missing != nil {
		return got, nil // the original server is not installed: nothing is compared
	}
	got.Original = strings.TrimSpace(original)
	if got.Theirs, err = r.play(s, folder, s.server); err != nil {
		return got, fmt.Errorf("beside %s: %w", s.server, err)
	}
	return got, nil
}

var originalVersion = map[string]string{
	gearmand:   debian + "gearman-job-server",
	beanstalkd: debian + "beanstalkd",
	faktory:    "echo " + server.Faktory,
}

// output runs a shell command in the project's folder.
func (r *runner) output(shell string) (string, error) {
	cmd := exec.Command("bash", "-ec", shell)
	cmd.Dir = r.root
	out, err := cmd.Output()
	return string(out), err
}

// play runs a suite beside the original server, or beside the broker if original is empty.
func (r *runner) play(s suite, folder, original string) (count, error) {
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	if s.tests != "" {
		return r.integration(ctx, s.tests, original != "")
	}
	j, err := r.job(s, folder, original)
	if err != nil {
		return count{}, err
	}
	input, err := json.Marshal(j)
	if err != nil {
		return count{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return count{}, err
	}
	cmd := exec.CommandContext(ctx, self, insideArgument)
	cmd.SysProcAttr = server.OwnNetwork(syscall.SIGTERM)
	return r.counted(cmd, s.output, input, cmp.Or(original, "broker")+" "+s.name)
}

// integration runs integration tests.
func (r *runner) integration(ctx context.Context, tests string, original bool) (count, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-json", "-run", tests, ".")
	cmd.Dir = filepath.Join(r.root, "integration")
	cmd.Env = append(os.Environ(), "BROKER_BIN="+r.binary)
	if original {
		cmd.Env = append(cmd.Env, "BROKER_REFERENCE=1")
	}
	return r.counted(cmd, goTest, nil, fmt.Sprintf("%s original=%v", tests, original))
}

// counted runs a command and counts what it prints. The output of one whose tests do not all pass is kept.
func (r *runner) counted(cmd *exec.Cmd, kind int, input []byte, name string) (count, error) {
	var out, failure bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &out, &failure
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	c, parseErr := parse(kind, out.String())
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == errInside || cmd.ProcessState.ExitCode() < 0 {
		return count{}, fmt.Errorf("%w: %s", err, lastLines(failure.String()))
	}
	if parseErr != nil || c.Failed > 0 {
		fmt.Printf("   %s\n%s\n", name, lastLines(out.String()))
	}
	return c, parseErr
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// job is what runs inside the namespace.
func (r *runner) job(s suite, folder, original string) (job, error) {
	j := job{Shell: s.shell, Folder: folder, Env: append(s.env, "STUBS="+r.dir)}
	data, err := os.MkdirTemp(r.dir, "store-")
	if err != nil {
		return j, err
	}
	switch original {
	case gearmand:
		path, err := server.LookPath(gearmand)
		if err != nil {
			return j, err
		}
		j.Server = []string{path, "--listen=127.0.0.1", "--port=4730", "--log-file=stderr", "--verbose=ERROR"}
		j.Ports = []string{"127.0.0.1:4730"}
	case beanstalkd:
		path, err := server.LookPath(beanstalkd)
		if err != nil {
			return j, err
		}
		j.Server, j.Ports = []string{path, "-l", "127.0.0.1", "-p", "11300"}, []string{"127.0.0.1:11300"}
	case faktory:
		path, err := server.BuildFaktory(r.dir, server.Faktory)
		if err != nil {
			return j, err
		}
		j.Server = []string{
			path, "-b", "127.0.0.1:7419", "-w", "127.0.0.1:7420", "-e", "development", "-l", "warn",
			"-d", data, "-c", data,
		}
		j.Ports = []string{"127.0.0.1:7419"}
	default:
		config := filepath.Join(r.dir, "broker.toml")
		if err := os.WriteFile(config, []byte("[qless]\nallow_flush = true\n"), 0o600); err != nil {
			return j, err
		}
		j.Server = []string{
			r.binary, "serve", "--config", config, "--data", filepath.Join(data, "store"), "--workq", "127.0.0.1:9922",
			"--gearman", "127.0.0.1:4730", "--faktory", "127.0.0.1:7419", "--beanstalk", "127.0.0.1:11300",
			"--qless", "127.0.0.1:6379", "--sqs", "127.0.0.1:4566", "--http", "127.0.0.1:7420",
		}
		j.Ports = []string{"127.0.0.1:4730", "127.0.0.1:7419", "127.0.0.1:11300", "127.0.0.1:6379", "127.0.0.1:4566"}
	}
	if s.before != "" {
		j.Before = s.before
	}
	return j, nil
}
