package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"broker/integration/server"
)

// packages maps tools to the Debian packages that contain them.
var packages = map[string]string{
	"gearman":    "gearman-tools",
	"gearadmin":  "gearman-tools",
	"gearmand":   "gearman-job-server",
	"beanstalkd": "beanstalkd",

	"redis-server": "redis-server",
	"bash":         "bash",
	"php":          "php-cli",
	"perl":         "perl",
	"node":         "nodejs",
	"npm":          "npm",
	"python3":      "python3",
	"ruby":         "ruby",
	"curl":         "curl",
	"debootstrap":  "debootstrap",
	"promtool":     "prometheus",
	"prometheus":   "prometheus",
	"dpkg-deb":     "dpkg",
	"git":          "git",
	"lintian":      "lintian",
	"rpm":          "rpm",

	"qemu-aarch64-static": "qemu-user-static",
	// Libraries:
	"php-gearman":  "php-gearman",
	"perl-gearman": "libgearman-client-perl",

	"php-pheanstalk": "php-pda-pheanstalk",
	"php-laravel":    "php-pda-pheanstalk php-illuminate-queue php-illuminate-events",
	"ruby-beaneater": "ruby-beaneater",

	"python3-redis":  "python3-redis",
	"python3-boto3":  "python3-boto3",
	"python3-celery": "python3-celery python3-pycurl",
}

// probes are commands that succeed if a library is installed.
var probes = map[string][]string{
	"php-gearman":  {"php", "-r", `exit(extension_loaded("gearman") ? 0 : 1);`},
	"perl-gearman": {"perl", "-MGearman::Client", "-MGearman::Worker", "-e", "1"},

	"php-pheanstalk": {"php", "-r", "require 'Pheanstalk/autoload.php';"},
	"php-laravel": {
		"php", "-r",
		"foreach (['Pheanstalk', 'Illuminate/Queue', 'Illuminate/Events'] as $p) require \"$p/autoload.php\";",
	},
	"ruby-beaneater": {"ruby", "-e", `require "beaneater"`},

	"python3-redis":  {"/usr/bin/python3", "-c", "import redis"}, // Debian's, whatever else is in PATH
	"python3-boto3":  {"/usr/bin/python3", "-c", "import boto3"},
	"python3-celery": {"/usr/bin/python3", "-c", "import celery, kombu, boto3, pycurl"},
}

// Need skips the test if one of the tools is not installed; the reason names the package to install. With CI=true
// nothing may be skipped: the test fails.
func Need(t testing.TB, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if !installed(tool) {
			skip(t, tool+" is not installed; the Debian package "+packages[tool]+" has it")
		}
	}
}

// Browser returns the path of Chromium, and skips the test if it is not installed. Its headless shell takes half of the
// processor time.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	skip(t, "Chromium is not installed; the Debian package chromium-headless-shell has it")
	return ""
}

// NeedRoot skips the test unless the process runs as root.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "not running as root")
	}
}

func installed(tool string) bool {
	if probe, ok := probes[tool]; ok {
		return exec.Command(probe[0], probe[1:]...).Run() == nil
	}
	_, err := server.LookPath(tool)
	return err == nil
}

// skip skips the test. It is the only place where tests are skipped.
func skip(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// GoTool is the path of a program that make tools installs; the test is skipped without it.
func GoTool(t testing.TB, name string) string {
	t.Helper()
	root, err := server.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "bin", "tools", name)
	if _, err := os.Stat(path); err != nil {
		skip(t, name+" is not installed; make tools does it")
	}
	return path
}

// Script is the path of a client program under integration/clients.
func Script(t testing.TB, name string) string {
	t.Helper()
	root, err := server.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "integration", "clients", name)
}

// nodeModules installs the Node packages once per test process.
var nodeModules = sync.OnceValue(installNodeModules)

// NeedNode prepares a test that runs our Node programs: it installs the packages they need.
func NeedNode(t testing.TB) {
	t.Helper()
	Need(t, "node", "npm")
	if err := nodeModules(); err != nil {
		skip(t, "the packages in integration/clients/node could not be installed: "+err.Error())
	}
}

func installNodeModules() error {
	root, err := server.Root()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "integration", "clients", "node")
	// Several test processes may run this at the same time.
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "broker-node-modules.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if nodeModulesComplete(dir) {
		return nil
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// nodeModulesComplete reports whether each of the packages is there.
func nodeModulesComplete(dir string) bool {
	for _, name := range []string{
		"faktory-worker", "axe-core", "@apidevtools/swagger-parser", "redis", "sqs-consumer", "jackd",
	} {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", name, "package.json")); err != nil {
			return false
		}
	}
	return true
}
