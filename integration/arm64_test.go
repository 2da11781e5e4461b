//go:build nightly

package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

// TestARM64 runs the program that is released for arm64 in an emulator: it starts, runs a job and stops. Alignment,
// memory order and assembly differ from amd64. Building it takes minutes, so this is for make nightly.
func TestARM64(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	harness.Need(t, "qemu-aarch64-static", "gearman")
	root, err := server.Root()
	check(t, err)
	dir := t.TempDir()
	program, emulated := filepath.Join(dir, "broker.arm64"), filepath.Join(dir, "broker")
	harness.Run(t, harness.Command{Argv: []string{filepath.Join(root, "packaging/program.sh"), "arm64", program}})
	check(t, os.WriteFile(emulated, []byte("#!/bin/sh\nexec qemu-aarch64-static '"+program+"' \"$@\"\n"), 0o700))

	version := harness.Run(t, harness.Command{Argv: []string{emulated, "version"}})
	if !strings.HasSuffix(version, " linux/arm64\n") {
		t.Errorf("version %q", version)
	}
	b, err := server.NewBroker(dir, server.BrokerOptions{Binary: emulated})
	check(t, err)
	t.Cleanup(func() {
		if b.Process != nil {
			b.Kill()
		}
	})
	check(t, b.Start())
	host, port := server.Split(b.Gearman)
	gearman := []string{"gearman", "-h", host, "-p", port, "-f", "q"}
	harness.Run(t, harness.Command{Argv: append(gearman, "-b", "payload")})
	harness.Run(t, harness.Command{Argv: append(gearman, "-w", "-c", "1", "--", "tee", filepath.Join(dir, "got"))})
	got, err := os.ReadFile(filepath.Join(dir, "got"))
	check(t, err)
	equal(t, "the job", string(got), "payload")
	check(t, b.Signal(syscall.SIGTERM))
	code, err := b.Wait(harness.Patience)
	check(t, err)
	equal(t, "exit code", code, 0)
}
