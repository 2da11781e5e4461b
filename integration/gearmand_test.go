package integration_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// startGearmand runs the broker as gearmand.
func startGearmand(t *testing.T, dir string, args ...string) (*server.Process, string) {
	t.Helper()
	harness.BrokerOnly(t)
	addr, err := server.FreeAddr()
	check(t, err)
	host, port := server.Split(addr)
	link := filepath.Join(dir, "gearmand")
	if err := os.Symlink(harness.Binary(t), link); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	argv := append([]string{link, "--listen=" + host, "--port=" + port, "--log-file=stderr"}, args...)
	p, err := server.Launch(server.Spec{
		Name: "gearmand", Argv: argv, Dir: dir, Logs: dir, Env: []string{"BROKER_DATA=" + filepath.Join(dir, "data")},
	})
	check(t, err)
	t.Cleanup(p.Kill)
	check(t, server.WaitListening(p, addr, harness.Patience))
	return p, addr
}

func TestGearmandByItsOwnNameAndCommandLine(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman", "gearadmin")
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "gearmand.pid")
	p, addr := startGearmand(t, dir, "--pid-file="+pidFile, "--job-retries=2", "--job-handle-prefix=X")
	host, port := server.Split(addr)
	tool := func(stdin string, argv ...string) string {
		t.Helper()
		return harness.Run(t,
			harness.Command{Argv: append([]string{argv[0], "-h", host, "-p", port}, argv[1:]...), Stdin: stdin})
	}
	equal(t, "version", tool("", "gearadmin", "--server-version"), "1.1.20\n")
	pid, err := os.ReadFile(pidFile)
	check(t, err)
	equal(t, "pid file and getpid", strings.TrimSpace(string(pid)),
		strings.TrimSpace(tool("", "gearadmin", "--getpid")))
	harness.Spawn(t, harness.Command{Argv: []string{
		"gearman", "-h", host, "-p", port, "-w", "-f", "upper", "--", "tr", "a-z", "A-Z",
	}})
	equal(t, "a job", tool("hello", "gearman", "-f", "upper"), "HELLO")

	// Two attempts, then the job fails.
	c, err := gearmanclient.Dial(addr)
	check(t, err)
	defer func() { _ = c.Close() }() // every reply was read
	handle, err := c.Submit(gearmanclient.SubmitJob, "fatal", "", "x")
	check(t, err)
	equal(t, "handle", strings.HasPrefix(handle, "X:"), true)
	for range 2 {
		w, err := gearmanclient.Dial(addr)
		check(t, err)
		check(t, w.Send(gearmanclient.CanDo, "fatal"))
		_, _, _, _, err = w.Grab(harness.Patience)
		check(t, err)
		check(t, w.Close())
	}
	_, err = c.Expect(gearmanclient.WorkFail, harness.Patience)
	check(t, err)

	check(t, p.Signal(syscall.SIGTERM))
	code, err := p.Wait(harness.Patience)
	check(t, err)
	equal(t, "exit code", code, 0)
	if _, err := os.Stat(pidFile); !os.IsNotExist(err) {
		t.Errorf("the pid file still exists: %v", err)
	}
}

func TestGearmandRefusesInvalidArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"positional"}, {"--log", "x"}, {"--verbose=LOUD"}, {"--config-file=/does/not/exist"},
	} {
		r := brokerCommand(t, append([]string{"gearmand"}, args...)...)
		equal(t, args[0]+": exit code", r.Code, 1)
		equal(t, args[0]+": a reason is given", strings.TrimSpace(r.Stderr+r.Stdout) != "", true)
	}
	for _, flag := range []string{"--help", "--version"} {
		equal(t, flag, brokerCommand(t, "gearmand", flag).Code, 0)
	}
}

func TestGearmandTakesALongHandlePrefix(t *testing.T) {
	t.Parallel()
	prefix := strings.Repeat("p", 61)
	_, addr := startGearmand(t, t.TempDir(), "--job-handle-prefix="+prefix)
	c, err := gearmanclient.Dial(addr)
	check(t, err)
	defer func() { _ = c.Close() }() // every reply was read
	for n := 1; n <= 10; n++ {
		number := strconv.Itoa(n)
		handle, err := c.Submit(gearmanclient.SubmitJobBg, "f", "", "x")
		check(t, err)
		equal(t, "handle", handle, prefix[:62-len(number)]+":"+number)
		equal(t, "the job is known", jobStatus(t, c, handle), "1 0 0 0")
	}
}
