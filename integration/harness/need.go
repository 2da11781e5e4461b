package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"broker/integration/server"
)

// packages says which Debian package gives each tool.
var packages = map[string]string{
	"gearman":    "gearman-tools",
	"gearadmin":  "gearman-tools",
	"gearmand":   "gearman-job-server",
	"beanstalkd": "beanstalkd",

	"redis-server": "redis-server",
	"php":          "php-cli",
	"perl":         "perl",
	"node":         "nodejs",
	"npm":          "npm",
	// Not programs but libraries of one:
	"php-gearman":  "php-gearman",
	"perl-gearman": "libgearman-client-perl",
}

// probes finds libraries, which are not on the path.
var probes = map[string][]string{
	"php-gearman":  {"php", "-r", `exit(extension_loaded("gearman") ? 0 : 1);`},
	"perl-gearman": {"perl", "-MGearman::Client", "-MGearman::Worker", "-e", "1"},
}

// Need says that a test cannot run without these tools. Without them the test is skipped, and the reason names the
// package to install; where CI is set nothing may be skipped and the test fails.
func Need(t testing.TB, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if !installed(tool) {
			lack(t, tool+" is not installed; the Debian package "+packages[tool]+" has it")
		}
	}
}

func installed(tool string) bool {
	if probe, ok := probes[tool]; ok {
		return exec.Command(probe[0], probe[1:]...).Run() == nil
	}
	_, err := server.LookPath(tool)
	return err == nil
}

// lack is the only place where a test is skipped.
func lack(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// Script is the path of a client program under integration/clients.
func Script(t testing.TB, name string) string {
	t.Helper()
	root, err := server.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "integration", "clients", name)
}

// nodeModules is filled once for all tests of this process.
var nodeModules = sync.OnceValue(func() error { return installNodeModules() })

// NeedNode says that a test runs one of our programs for Node; what they stand on is installed if it is not there yet.
func NeedNode(t testing.TB) {
	t.Helper()
	Need(t, "node", "npm")
	if err := nodeModules(); err != nil {
		lack(t, "the packages in integration/clients/node could not be installed: "+err.Error())
	}
}

func installNodeModules() error {
	root, err := server.ModuleRoot()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "integration", "clients", "node")
	// Test binaries of several packages may come here at the same time.
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "broker-node-modules.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // gives the lock back
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "faktory-worker", "package.json")); err == nil {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return &installError{output: string(out), err: err}
	}
	return nil
}

type installError struct {
	output string
	err    error
}

func (e *installError) Error() string { return e.err.Error() + "\n" + e.output }
func (e *installError) Unwrap() error { return e.err }
