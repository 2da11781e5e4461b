package packages_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"broker/integration/beanstalkclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// build makes the packages of one version for this machine's architecture.
func build(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	runWith(t, []string{"ARCHS=amd64", "VERSION=" + version, "SOURCE_DATE_EPOCH=1700000000"}, "packaging/build.sh", dir)
	return dir
}

// find returns the one file that matches.
func find(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %q, %v; want one file", pattern, files, err)
	}
	return files[0]
}

func TestPackages(t *testing.T) {
	harness.NeedRoot(t)
	harness.Need(t, "debootstrap", "dpkg-deb", "lintian", "rpm", "gearman", "gearadmin", "gearmand", "beanstalkd")
	older, newer := build(t, "v1.2.0-rc.1"), build(t, "v1.2.0")

	t.Run("two builds are equal", func(t *testing.T) { wantEqualFiles(t, newer, build(t, "v1.2.0")) })
	t.Run("lintian", func(t *testing.T) {
		for _, name := range []string{"broker_*.deb", "broker-gearmand_*.deb", "broker-beanstalkd_*.deb"} {
			if got := run(t, "lintian", "--fail-on", "error,warning", "--tag-display-limit", "0", "--allow-root",
				find(t, newer, name)); got != "" {
				t.Errorf("%s:\n%s", name, got)
			}
		}
	})
	t.Run("life of an installation", func(t *testing.T) { testLife(t, older, newer) })
	t.Run("warning while gearmand runs", func(t *testing.T) { testWarning(t, newer, "gearmand", server.StartGearmand) })
	t.Run("warning while beanstalkd runs",
		func(t *testing.T) { testWarning(t, newer, "beanstalkd", server.StartBeanstalkd) })
	t.Run("in place of gearmand", func(t *testing.T) { testGearmand(t, newer) })
	t.Run("in place of beanstalkd", func(t *testing.T) { testBeanstalkd(t, newer) })
	t.Run("rpm", func(t *testing.T) { testRPM(t, newer) })
	t.Run("life of an installation by rpm", func(t *testing.T) { testRPMLife(t, older, newer) })
}

func TestOnePackageIsBuiltAlone(t *testing.T) {
	dir := t.TempDir()
	runWith(t, []string{"ARCHS=amd64", "KINDS=deb", "PACKAGES=broker", "VERSION=v1.2.0"}, "packaging/build.sh", dir)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if want := filepath.Join(dir, "broker_1.2.0_amd64.deb"); err != nil || !slices.Equal(files, []string{want}) {
		t.Errorf("%q, %v; want %s alone", files, err, want)
	}
}

// wantEqualFiles compares all files of two folders.
func wantEqualFiles(t *testing.T, a, b string) {
	t.Helper()
	names := func(dir string) []string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	if got, want := names(b), names(a); len(want) != 6 || !slices.Equal(got, want) {
		t.Fatalf("first %q, then %q; want 6 files with the same names", want, got)
	}
	for _, name := range names(a) {
		x, err := os.ReadFile(filepath.Join(a, name))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s differs", name)
		}
	}
}

// testLife installs the broker, uses it, upgrades it with jobs in the store, removes it and purges it.
func testLife(t *testing.T, older, newer string) {
	d := newDebian(t)
	d.install(find(t, older, "broker_*.deb"))
	if got := d.run("stat", "-c", "%U:%G %a", "/var/lib/broker",
		"/etc/broker/broker.toml"); got != "broker:broker 700\nroot:broker 640" {
		t.Errorf("owners and modes: %s", got)
	}
	if got := d.run("getent", "passwd", "broker"); !strings.HasSuffix(got, ":/usr/sbin/nologin") {
		t.Errorf("user: %s", got)
	}
	for _, f := range []string{
		"/usr/share/man/man1/broker-serve.1.gz", "/usr/share/bash-completion/completions/broker",
		"/lib/systemd/system/broker.service", "/lib/systemd/system/broker-gearman.socket",
		"/usr/share/doc/broker/third-party-licenses.gz",
	} {
		if !d.exists(f) {
			t.Errorf("%s is missing", f)
		}
	}

	// An administrator's change survives the upgrade.
	address := d.configure()
	d.wantJobs(address, 3)
	d.install(find(t, newer, "broker_*.deb"))
	if got := d.run("/usr/bin/broker", "--version"); !strings.Contains(got, "v1.2.0 ") {
		t.Errorf("after the upgrade: %s", got)
	}
	d.wantJobs(address, 0)

	d.run("dpkg", "--remove", "broker")
	if d.exists("/usr/bin/broker") || !d.exists("/var/lib/broker/data") || !d.exists("/etc/broker/broker.toml") {
		t.Error("removing takes the program and leaves jobs and settings")
	}
	d.run("dpkg", "--purge", "broker")
	for _, f := range []string{"/var/lib/broker", "/etc/broker", "/etc/systemd/system/broker.service"} {
		if d.exists(f) {
			t.Errorf("%s is left after the purge", f)
		}
	}
	if got := d.run("sh", "-c", "getent passwd broker || echo none"); got != "none" {
		t.Errorf("user after the purge: %s", got)
	}
}

// testWarning runs what a package asks before it is installed, without and with a server that runs here and that it
// replaces.
func testWarning(t *testing.T, dir, program string, start func(dir string, args ...string) (*server.Peer, error)) {
	control := t.TempDir()
	run(t, "dpkg-deb", "--control", find(t, dir, "broker-"+program+"_*.deb"), control)
	ask := func() string {
		return runWith(t, []string{"DEBIAN_FRONTEND=teletype", "DEBCONF_DB_OVERRIDE=File{" + t.TempDir() + "/answers}"},
			"/usr/share/debconf/frontend", filepath.Join(control, "config"), "configure")
	}
	if running := exec.Command("pidof", program).Run() == nil; !running {
		if got := ask(); got != "" {
			t.Errorf("without %s: %s", program, got)
		}
	}
	s, err := start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	if got := strings.Join(strings.Fields(ask()), " "); !strings.Contains(got, "import its jobs first") ||
		!strings.Contains(got, "broker import") {
		t.Errorf("with %s: %q", program, got)
	}
}

// testGearmand installs the package that replaces gearmand.
func testGearmand(t *testing.T, dir string) {
	d := newDebian(t)
	d.install(find(t, dir, "broker_*.deb"), find(t, dir, "broker-gearmand_*.deb"))
	fields := run(t, "dpkg-deb", "--field", find(t, dir, "broker-gearmand_*.deb"), "Provides", "Conflicts", "Replaces")
	if fields != "Provides: gearman-job-server\nConflicts: gearman-job-server\nReplaces: gearman-job-server" {
		t.Errorf("fields:\n%s", fields)
	}
	if link := d.run("readlink",
		"/etc/systemd/system/multi-user.target.wants/gearman-job-server.service"); link != "/lib/systemd/system/gearman-job-server.service" {
		t.Errorf("the unit is enabled by %q", link)
	}
	if page := d.run("zcat", "/usr/share/man/man1/broker-gearmand.1.gz"); !strings.Contains(page, `\-\-job\-retries`) ||
		!strings.Contains(page, "GEARMAND_PORT") {
		t.Errorf("the manual page has no options or no environment:\n%s", page)
	}
	address := freeAddr(t)
	host, port := server.Split(address)
	p := d.start("gearman", "env", "BROKER_DATA=/var/lib/gearman/broker", "/usr/sbin/gearmand", "--listen="+host,
		"--port="+port,
		"--log-file=stderr", "--queue-type=libsqlite3")
	waitListening(t, p, address)
	run(t, "gearman", "-h", host, "-p", port, "-f", "kept", "-b", "payload")
	if got := run(t, "gearadmin", "-h", host, "-p", port, "--status"); got != "kept\t1\t0\t0\n." {
		t.Errorf("status %q", got)
	}
	stop(t, p)
	d.run("dpkg", "--remove", "broker-gearmand")
	if d.exists("/usr/sbin/gearmand") || !d.exists("/var/lib/gearman/broker") {
		t.Error("removing takes the program and leaves the jobs")
	}
	d.run("dpkg", "--purge", "broker-gearmand")
	if d.exists("/var/lib/gearman") ||
		d.exists("/etc/systemd/system/multi-user.target.wants/gearman-job-server.service") {
		t.Error("the purge leaves something")
	}
}

// testBeanstalkd installs the package that replaces beanstalkd.
func testBeanstalkd(t *testing.T, dir string) {
	d := newDebian(t)
	d.install(find(t, dir, "broker_*.deb"), find(t, dir, "broker-beanstalkd_*.deb"))
	fields := run(t, "dpkg-deb", "--field", find(t, dir, "broker-beanstalkd_*.deb"), "Provides", "Conflicts",
		"Replaces")
	if fields != "Provides: beanstalkd\nConflicts: beanstalkd\nReplaces: beanstalkd" {
		t.Errorf("fields:\n%s", fields)
	}
	if link := d.run("readlink",
		"/etc/systemd/system/multi-user.target.wants/beanstalkd.service"); link != "/lib/systemd/system/beanstalkd.service" {
		t.Errorf("the unit is enabled by %q", link)
	}
	address := freeAddr(t)
	host, port := server.Split(address)
	use := func(fn func(c *beanstalkclient.Client) error) {
		t.Helper()
		p := d.start("beanstalkd", "/usr/bin/beanstalkd", "-b", "/var/lib/beanstalkd/broker", "-l", host, "-p", port)
		waitListening(t, p, address)
		c, err := beanstalkclient.Dial(address)
		if err == nil {
			err = fn(c)
			_ = c.Close() // every reply was read
		}
		if err != nil {
			t.Error(err)
		}
		stop(t, p)
	}
	use(func(c *beanstalkclient.Client) error {
		_, err := c.Put(beanstalkclient.Job{Body: []byte("kept")})
		return err
	})
	use(func(c *beanstalkclient.Client) error {
		job, err := c.Reserve(0)
		if string(job.Body) != "kept" {
			t.Errorf("reserved %q", job.Body)
		}
		return err
	})
	d.run("dpkg", "--remove", "broker-beanstalkd")
	if d.exists("/usr/bin/beanstalkd") || !d.exists("/var/lib/beanstalkd/broker") {
		t.Error("removing takes the program and leaves the jobs")
	}
	d.run("dpkg", "--purge", "broker-beanstalkd")
	if d.exists("/var/lib/beanstalkd") || d.exists("/etc/systemd/system/multi-user.target.wants/beanstalkd.service") {
		t.Error("the purge leaves something")
	}
}

func waitListening(t *testing.T, p *server.Process, address string) {
	t.Helper()
	if err := server.WaitListening(p, address, harness.Patience); err != nil {
		t.Fatal(err)
	}
}

// stop ends a server as systemd does.
func stop(t *testing.T, p *server.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(harness.Patience); err != nil || code != 0 {
		t.Fatalf("stop: exit %d, %v\n%s", code, err, p.Tail())
	}
}
