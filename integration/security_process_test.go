package integration_test

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// socket is a line of /proc/PID/net/tcp or tcp6.
type socket struct{ local, remote, state string }

// The states of interest.
const (
	established = "01"
	synSent     = "02"
	listening   = "0A"
)

// socketsOf lists the open internet sockets of a process.
func socketsOf(t *testing.T, pid int) []socket {
	t.Helper()
	own := make(map[string]bool)
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	check(t, err)
	for _, fd := range fds {
		to, err := os.Readlink(fd)
		if inode, ok := strings.CutPrefix(to, "socket:["); ok && err == nil {
			own[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var found []socket
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue // the kernel does not support that family
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && own[f[9]] {
				found = append(found, socket{local: address(t, f[1]), remote: address(t, f[2]), state: f[3]})
			}
		}
	}
	return found
}

// address parses an address of /proc: 4-byte words in host order, then the port.
func address(t *testing.T, text string) string {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	var ip []byte
	for at := 0; at+8 <= len(host); at += 8 {
		var word uint32
		_, err := fmt.Sscanf(host[at:at+8], "%x", &word)
		check(t, err)
		ip = binary.NativeEndian.AppendUint32(ip, word)
	}
	var number uint16
	_, err := fmt.Sscanf(port, "%x", &number)
	check(t, err)
	parsed, ok := netip.AddrFromSlice(ip)
	equal(t, "an address", ok, true)
	return netip.AddrPortFrom(parsed.Unmap(), number).String()
}

// inOwnNetwork tells the test binary that it was started again in its own network namespace.
const inOwnNetwork = "BROKER_TEST_OWN_NETWORK"

// The default ports may be in use on this machine, so the program runs in a network namespace of its own without
// routes: there it must bind the four default addresses, no others, and connect to nobody.
func TestDefaultsListenOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	if os.Getenv(inOwnNetwork) != "" {
		defaultsInOwnNetwork(t)
		return
	}
	if r := brokerCommand(t, "check-config"); strings.Count(r.Stdout, " 127.0.0.1:") != 4 {
		t.Errorf("the defaults are not four loopback addresses:\n%s", r.Stdout)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inOwnNetwork+"=1", "BROKER_BIN="+harness.Binary(t))
	cmd.SysProcAttr = server.OwnNetwork(syscall.SIGKILL)
	out, err := cmd.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran { //nolint:errorlint // os/exec does not wrap it
		t.Logf("cannot create a network namespace (%v): only the settings were checked", err)
		return
	}
	if err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func defaultsInOwnNetwork(t *testing.T) {
	t.Helper()
	bringLoopbackUp(t)
	p, err := server.Launch(server.Spec{
		Name: "broker", Argv: []string{harness.Binary(t), "serve", "--data", filepath.Join(t.TempDir(), "data")},
		Logs: t.TempDir(),
	})
	check(t, err)
	defer p.Kill()
	awaitReady(t, p, 0)
	defaults := []string{"127.0.0.1:4730", "127.0.0.1:7419", "127.0.0.1:7420", "127.0.0.1:9922"}
	look := func() (listen []string) {
		for _, s := range socketsOf(t, p.PID()) {
			switch {
			case s.state == listening:
				listen = append(listen, s.local)
			case s.state == synSent, !slices.Contains(defaults, s.local):
				t.Errorf("an outgoing connection: %+v", s)
			}
		}
		slices.Sort(listen)
		return listen
	}
	equal(t, "listening", look(), defaults)
	b := &harness.Broker{BrokerServer: &server.BrokerServer{Gearman: defaults[0]}}
	c := harness.DialGearman(t, b)
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		_, err := c.Submit(gearmanclient.SubmitJobBg, "f", "", "x")
		check(t, err)
		look()
	}
	ours := slices.ContainsFunc(socketsOf(t, p.PID()), func(s socket) bool { return s.state == established })
	equal(t, "our own connection is seen", ours, true)
}

// bringLoopbackUp does the same as ip link set lo up.
func bringLoopbackUp(t *testing.T) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	check(t, err)
	defer func() { _ = syscall.Close(fd) }() // nothing was written
	request := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, errno := syscall.Syscall(
		syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)),
	); errno != 0 {
		t.Fatal(errno)
	}
}

func TestStoreIsReadableByItsOwnerOnly(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	_, err := harness.DialGearman(t, b).Submit(gearmanclient.SubmitJobBg, "f", "", "x")
	check(t, err)
	copied := filepath.Join(t.TempDir(), "copy")
	status, answer := post(t, b, "/api/v1/backup", fmt.Sprintf("{\"dir\": %q}", copied))
	equal(t, "backup: "+answer, status, 200)
	for _, dir := range []string{b.Data, copied} {
		info, err := os.Stat(dir)
		check(t, err)
		equal(t, "rights of "+dir, info.Mode().Perm(), fs.FileMode(0o700))
	}
}

// The mode of an existing folder is not changed; the log warns if other users can read it.
func TestDataFolderReadableByOthersIsLogged(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for mode, told := range map[os.FileMode]bool{0o700: false, 0o755: true, 0o750: true} {
		b := harness.Prepare(t, harness.Options{})
		check(t, os.MkdirAll(b.Data, 0o700))
		check(t, os.Chmod(b.Data, mode))
		check(t, b.BrokerServer.Start())
		equal(t, fmt.Sprintf("mode %o is told", mode),
			strings.Contains(awaitReady(t, b.Process, 0), "data directory is readable by other users"), told)
		b.Crash()
	}
}

// If the test runs as root, it starts the broker as nobody: the broker must not need more rights. It writes to its data
// folder only.
func TestBrokerNeedsNoPrivileges(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	dir, err := os.MkdirTemp("", "brk")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	credential := &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()), NoSetGroups: true}
	if os.Geteuid() == 0 {
		const nobody = 65534
		credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		check(t, os.Chown(dir, nobody, nobody))
	}
	program, err := os.ReadFile(harness.Binary(t)) // other users cannot read the folder in which it was built
	check(t, err)
	path := filepath.Join(dir, "broker")
	check(t, os.WriteFile(path, program, 0o755))
	free := make([]string, 2)
	for i := range free {
		free[i], err = server.FreeAddr()
		check(t, err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	check(t, err)
	defer func() { _ = log.Close() }() // only the child writes
	cmd := exec.CommandContext(t.Context(), path, "serve", "--data", filepath.Join(dir, "data"),
		"--gearman", free[0], "--http", free[1], "--workq", "off", "--faktory", "off")
	cmd.Stderr, cmd.Dir = log, dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Pdeathsig: syscall.SIGKILL}
	check(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // the exit code does not matter
	}()
	var c net.Conn
	harness.Eventually(t, func() string {
		if c, err = net.Dial("tcp", free[0]); err != nil {
			return err.Error()
		}
		return ""
	})
	check(t, c.Close())
	b := &harness.Broker{BrokerServer: &server.BrokerServer{Gearman: free[0]}}
	_, err = harness.DialGearman(t, b).Submit(gearmanclient.SubmitJobBg, "f", "", "x")
	check(t, err)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	check(t, err)
	if os.Geteuid() == 0 && !strings.Contains(string(status), "CapEff:\t0000000000000000\n") {
		t.Errorf("the process has capabilities:\n%s", status)
	}
	entries, err := os.ReadDir(dir) // its working directory, home and temporary folder
	check(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	equal(t, "what is there besides the program and its output", names, []string{"broker", "data", "log"})
}
