package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

func TestASignalLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	program, err := server.Build("integration/bench", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(program, "-modes", "e", "-protocols", "workq", "-durability", "sync", "-jobs", "10000000",
		"-dir", dir)
	cmd.Env = append(os.Environ(), "BROKER_BIN="+harness.Binary(t))
	// Everything the program starts ends with it, even if this test is interrupted.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with the program
		_ = cmd.Wait() // its exit code is read below
		close(ended)
	}()

	server := waitForChild(t, cmd.Process.Pid)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(harness.Patience):
		_ = cmd.Process.Kill() // the test has failed already
		t.Fatal("still running after the signal")
	}
	if code, want := cmd.ProcessState.ExitCode(), 128+int(syscall.SIGTERM); code != want {
		t.Errorf("exit code %d, want %d", code, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	if err := syscall.Kill(server, 0); err == nil {
		t.Errorf("its server, process %d, still runs", server)
	}
}

func TestClosedOutputEndsTheRun(t *testing.T) {
	t.Parallel()
	program, err := server.Build("integration/bench", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-modes", "e", "-protocols", "workq", "-durability", "none", "-jobs", "100", "-dir",
		dir)
	cmd.Env = append(os.Environ(), "BROKER_BIN="+harness.Binary(t))
	cmd.Stdout = write
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Run()
	_ = write.Close() // nothing was written by this process
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d (%v), want 1", code, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// waitForChild waits until the program has started a server.
func waitForChild(t *testing.T, pid int) int {
	t.Helper()
	for deadline := time.Now().Add(harness.Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, child := range server.Children(pid) { // compilers are among them
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
			if err == nil && slices.Contains([]string{"broker", "beanstalkd"}, strings.TrimSpace(string(name))) {
				time.Sleep(200 * time.Millisecond) // let it fill its folder
				return child
			}
		}
	}
	t.Fatal("no server was started")
	return 0
}

func TestCleanupRunsOnce(t *testing.T) {
	t.Parallel()
	var l undoList
	var undone []string
	note := func(what string) func() { return func() { undone = append(undone, what) } }
	l.add(note("folder"))
	stop := l.add(note("server"))
	l.add(note("inner folder"))
	stop()
	stop()
	l.runAll()
	l.runAll()
	if want := []string{"server", "inner folder", "folder"}; !slices.Equal(undone, want) {
		t.Errorf("undone: %q, want %q", undone, want)
	}
}
