package packages_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"broker/integration/server"
)

// run runs a command in the module's folder and returns its output without the last line feed.
func run(t *testing.T, argv ...string) string {
	t.Helper()
	return runWith(t, nil, argv...)
}

// runWith is run with additions to the environment.
func runWith(t *testing.T, env []string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = projectRoot(t)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, out, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

func projectRoot(t *testing.T) string {
	t.Helper()
	root, err := server.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// debian is a folder with a minimal Debian system.
type debian struct {
	t   *testing.T
	dir string
}

// newDebian copies a minimal Debian system, which debootstrap makes once for each work tree.
func newDebian(t *testing.T) debian {
	t.Helper()
	cached := filepath.Join(projectRoot(t), ".cache", "debian")
	if _, err := os.Stat(cached); err != nil {
		if err := os.MkdirAll(filepath.Dir(cached), 0o755); err != nil {
			t.Fatal(err)
		}
		fresh, err := os.MkdirTemp(filepath.Dir(cached), "debian-")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(fresh) }() // renamed if all went well
		run(t, "debootstrap", "--variant=minbase", "--include=adduser", "bookworm", fresh)
		if err := os.Chmod(fresh, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, cached); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	run(t, "cp", "-a", cached+"/.", dir)
	// Other users pass through the folders above.
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return debian{t, dir}
}

// run runs a command inside.
func (d debian) run(argv ...string) string {
	d.t.Helper()
	return run(d.t, append([]string{"chroot", d.dir}, argv...)...)
}

// path is the place of an inside path.
func (d debian) path(inside string) string { return filepath.Join(d.dir, inside) }

// install installs package files as an administrator does.
func (d debian) install(files ...string) {
	d.t.Helper()
	argv := []string{"env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--install"}
	for _, f := range files {
		run(d.t, "cp", f, d.path("/tmp/"))
		argv = append(argv, "/tmp/"+filepath.Base(f))
	}
	d.run(argv...)
}

// start runs a server inside as a user.
func (d debian) start(user string, argv ...string) *server.Process {
	d.t.Helper()
	p, err := server.Launch(server.Spec{
		Name: user, Logs: d.t.TempDir(), Env: []string{"BROKER_MIN_FREE_DISK=0"},
		Argv: append([]string{"chroot", "--userspec=" + user + ":" + user, d.dir}, argv...),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(p.Kill)
	return p
}

// configure writes settings of a broker that listens for Gearman clients alone, and returns the address.
func (d debian) configure() string {
	d.t.Helper()
	address := freeAddr(d.t)
	settings := "workq.listen = \"off\"\nfaktory.listen = \"off\"\nhttp.listen = \"off\"\ngearman.listen = \"" +
		address + "\"\n"
	if err := os.WriteFile(d.path("/etc/broker/broker.toml"), []byte(settings), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return address
}

// wantJobs starts the installed broker, submits some jobs, checks that there are three, and stops the broker.
func (d debian) wantJobs(address string, submit int) {
	d.t.Helper()
	p := d.start("broker", "/usr/bin/broker", "serve", "--config", "/etc/broker/broker.toml", "--data",
		"/var/lib/broker/data")
	waitListening(d.t, p, address)
	host, port := server.Split(address)
	for range submit {
		run(d.t, "gearman", "-h", host, "-p", port, "-f", "kept", "-b", "payload")
	}
	if got := run(d.t, "gearadmin", "-h", host, "-p", port, "--status"); got != "kept\t3\t0\t0\n." {
		d.t.Errorf("status %q; want three jobs", got)
	}
	stop(d.t, p)
}

// exists tells whether an inside path exists.
func (d debian) exists(inside string) bool {
	_, err := os.Lstat(d.path(inside))
	return err == nil
}
