package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// activate starts the broker like systemd, with listening sockets.
func activate(t *testing.T, names string, sockets []*os.File, env []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	// LISTEN_PID must be the id of the process itself, which only that process knows.
	script := `export LISTEN_PID=$$; exec "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh", program(t, "broker"), "serve"}, args...)...)
	cmd.Env = append(os.Environ(), "BROKER_MIN_FREE_DISK=0", "LISTEN_FDNAMES="+names,
		"LISTEN_FDS="+string(rune('0'+len(sockets))))
	cmd.Env = append(cmd.Env, env...)
	cmd.ExtraFiles = sockets
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have exited
		_ = cmd.Wait()
	})
	return cmd, &output
}

// listeningSocket binds an address as a socket unit does.
func listeningSocket(t *testing.T, network, address string) (string, *os.File) {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := ln.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	f, err := ln.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	defer func() { _ = ln.Close() }() // the file is a duplicate
	return ln.Addr().String(), f
}

// notifySocket is the socket on which systemd waits for notifications.
func notifySocket(t *testing.T) (path string, next func() string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return path, func() string {
		t.Helper()
		_ = c.SetReadDeadline(time.Now().Add(patience))
		b := make([]byte, 200)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

func TestSocketsFromSystemdSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address, tcp := listeningSocket(t, "tcp", "127.0.0.1:0")
	path, unix := listeningSocket(t, "unix", filepath.Join(dir, "gearman.sock"))
	notify, next := notifySocket(t)
	args := []string{
		"--data", filepath.Join(dir, "data"), "--gearman", "127.0.0.1:1", "--workq", "off", "--faktory", "off",
		"--http", "off",
	}
	run := func() *exec.Cmd {
		cmd, output := activate(t, "gearman:gearman", []*os.File{tcp, unix}, []string{"NOTIFY_SOCKET=" + notify},
			args...)
		if got := next(); got != "READY=1" {
			t.Fatalf("notified %q\n%s", got, output)
		}
		return cmd
	}
	stop := func(cmd *exec.Cmd) {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if got := next(); got != "STOPPING=1" {
			t.Errorf("notified %q", got)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}

	first := run()
	dialGearman(t, address).submit("kept", "payload")
	stop(first)

	// No process accepts now, so the client waits.
	early, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	second := run()
	const want = "kept\t1\t0\t0"
	if got := newGearmanClient(t, early).ask("status"); got != want {
		t.Errorf("connected while the broker was down: status %q, want %q", got, want)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if got := newGearmanClient(t, c).ask("status"); got != want {
		t.Errorf("over the unix socket: status %q, want %q", got, want)
	}
	stop(second)
}

func TestSocketsFromSystemdAreCheckedLikeSettings(t *testing.T) {
	t.Parallel()
	_, anywhere := listeningSocket(t, "tcp", "0.0.0.0:0")
	_, local := listeningSocket(t, "tcp", "127.0.0.1:0")
	for _, c := range []struct {
		name, fdName, want string
		socket             *os.File
	}{
		{"http without a password", "http", "http.listen", anywhere},
		{"unknown name", "gearmand", `FileDescriptorName is "gearmand"`, local},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd, output := activate(t, c.fdName, []*os.File{c.socket}, nil, "--data",
				filepath.Join(t.TempDir(), "data"))
			if err := cmd.Wait(); err == nil || !strings.Contains(output.String(), c.want) {
				t.Errorf("exit %v, output %q; want an error with %q", err, output, c.want)
			}
		})
	}
}
