package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRestartsMayOverlapWithBindRetry(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(address, port, dir string) []string{
		"broker": func(address, _, dir string) []string {
			return []string{
				"serve", "--data", dir, "--gearman", address, "--workq", "off", "--faktory", "off", "--http", "off",
			}
		},
		"gearmand": func(_, port, dir string) []string {
			return []string{
				"-l", "stderr", "--verbose", "INFO", "-L", "127.0.0.1", "-p", port, "-q", "libsqlite3",
				"--libsqlite3-db=" + dir,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, port := freeAddress(t)
			words := args(address, port, filepath.Join(t.TempDir(), "data"))
			retry := []string{fmt.Sprintf("BROKER_BIND_RETRY=%v", patience)}
			first := start(t, retry, name, words...)
			dialGearman(t, address).submit("kept", "payload")
			second := start(t, retry, name, words...)
			eventually(t, "the second one to wait", func() bool {
				return strings.Contains(second.output.String(), "address in use, retrying")
			})
			first.signal(syscall.SIGTERM)
			first.wantExit(0)
			if got := dialGearman(t, address).ask("status"); got != "kept\t1\t0\t0" {
				t.Errorf("after the restart: %q", got)
			}
			second.signal(syscall.SIGTERM)
			second.wantExit(0)
		})
	}
}

func TestBindRetryWaitsForTheStore(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	serve := func(address string) []string {
		return []string{
			"serve", "--data", data, "--gearman", address, "--workq", "off", "--faktory", "off", "--http", "off",
		}
	}
	address, _ := freeAddress(t)
	other, _ := freeAddress(t)
	first := start(t, nil, "broker", serve(address)...)
	dialGearman(t, address).submit("kept", "x")
	second := start(t, []string{fmt.Sprintf("BROKER_BIND_RETRY=%v", patience)}, "broker", serve(other)...)
	eventually(t, "the second one to wait", func() bool {
		return strings.Contains(second.output.String(), "store in use, retrying")
	})
	first.signal(syscall.SIGTERM)
	first.wantExit(0)
	if got := dialGearman(t, other).ask("status"); got != "kept\t1\t0\t0" {
		t.Errorf("after the restart: %q", got)
	}
}

func TestServeFailsAtOnceWithoutBindRetry(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }() // the test is over
	r := start(t, nil, "broker", "serve", "--durability", "none", "--gearman", taken.Addr().String(), "--workq", "off",
		"--faktory", "off", "--http", "off")
	r.wantExit(1)
	if out := r.output.String(); strings.Contains(out, "retrying") || !strings.Contains(out, "address already in use") {
		t.Errorf("output: %s", out)
	}
}

func TestSignalEndsBindRetry(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }() // the test is over
	r := start(t, []string{"BROKER_BIND_RETRY=1h"}, "broker", "serve", "--durability", "none", "--gearman",
		taken.Addr().String(),
		"--workq", "off", "--faktory", "off", "--http", "off")
	eventually(t, "the wait", func() bool { return strings.Contains(r.output.String(), "address in use, retrying") })
	r.signal(syscall.SIGTERM)
	r.wantExit(0)
}
