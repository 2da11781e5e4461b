package packages_test

import (
	"slices"
	"strings"
	"testing"
)

// testRPM checks what rpm says of the packages, and that their scripts are shell.
func testRPM(t *testing.T, dir string) {
	for pattern, want := range map[string][]string{
		"broker-1*.rpm": {
			"/etc/broker/broker.toml root broker 100640", "/usr/bin/broker root root 100755",
			"/usr/lib/systemd/system/broker.service root root 100644", "/var/lib/broker broker broker 40700",
		},
		"broker-gearmand-1*.rpm": {"/usr/lib/systemd/system/gearman-job-server.service root root 100644"},
		"broker-beanstalkd-1*.rpm": {
			"/usr/lib/systemd/system/beanstalkd.service root root 100644",
			"/var/lib/beanstalkd/broker beanstalkd beanstalkd 40700",
		},
	} {
		file := find(t, dir, pattern)
		run(t, "rpm", "--checksig", "--nosignature", file)
		lines := strings.Split(run(t, "rpm", "-qp", "--queryformat",
			`[%{FILENAMES} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILEMODES:octal}\n]`, file), "\n")
		for _, line := range want {
			if !slices.Contains(lines, line) {
				t.Errorf("%s: no %q in\n%s", file, line, strings.Join(lines, "\n"))
			}
		}
		if got := run(t, "rpm", "-qp", "--queryformat", "%{VERSION} %{ARCH} %{LICENSE}",
			file); got != "1.2.0 x86_64 Apache-2.0" {
			t.Errorf("%s: %s", file, got)
		}
		for _, script := range []string{"PREIN", "POSTIN", "PREUN", "POSTUN"} {
			text := run(t, "rpm", "-qp", "--queryformat", "%{"+script+"}", file)
			if text == "" || text == "(none)" {
				t.Errorf("%s: no %s", file, script)
			}
			run(t, "sh", "-n", "-c", text)
		}
	}
}

// testRPMLife installs the package with rpm, upgrades it with jobs in the store and erases it. The scripts run in the
// root, which is Debian's: rpm knows none of its packages, so that dependencies are not checked.
func testRPMLife(t *testing.T, older, newer string) {
	d := newDebian(t)
	rpm := func(argv ...string) string {
		t.Helper()
		return run(t, append([]string{"rpm", "--force-debian", "--nodeps", "--root", d.dir}, argv...)...)
	}
	rpm("--install", find(t, older, "broker-1*.rpm"))
	if got := d.run("stat", "-c", "%U:%G %a", "/var/lib/broker",
		"/etc/broker/broker.toml"); got != "broker:broker 700\nroot:broker 640" {
		t.Errorf("owners and modes: %s", got)
	}
	if got := rpm("--verify", "broker"); got != "" {
		t.Errorf("what differs from the package: %s", got)
	}

	// An administrator's change survives the upgrade, and is put aside at the end.
	address := d.configure()
	d.wantJobs(address, 3)
	rpm("--upgrade", find(t, newer, "broker-1*.rpm"), find(t, newer, "broker-gearmand-1*.rpm"),
		find(t, newer, "broker-beanstalkd-1*.rpm"))
	if got := d.run("/usr/bin/broker", "--version"); !strings.Contains(got, "v1.2.0 ") {
		t.Errorf("after the upgrade: %s", got)
	}
	d.wantJobs(address, 0)
	if got := d.run("/usr/sbin/gearmand", "--version"); !strings.Contains(got, "v1.2.0") {
		t.Errorf("gearmand: %s", got)
	}
	if got := d.run("/usr/bin/beanstalkd", "-v"); !strings.Contains(got, "v1.2.0") {
		t.Errorf("beanstalkd: %s", got)
	}

	rpm("--erase", "broker", "broker-gearmand", "broker-beanstalkd")
	for f, want := range map[string]bool{
		"/usr/bin/broker": false, "/usr/sbin/gearmand": false, "/usr/bin/beanstalkd": false,
		"/var/lib/broker/data": true, "/etc/broker/broker.toml.rpmsave": true,
	} {
		if d.exists(f) != want {
			t.Errorf("%s exists after the package was erased: %v", f, !want)
		}
	}
}
