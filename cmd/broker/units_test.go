package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"broker/cmd/broker/cli"
	"broker/cmd/broker/gearmand"
	"broker/config"
)

// unit is a systemd unit: the values of each key, in order.
type unit map[string][]string

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "packaging", "systemd", name))
	if err != nil {
		t.Fatal(err)
	}
	u := make(unit)
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			section = line
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section == "" {
			t.Fatalf("%s: %q", name, line)
		}
		if section == "[Service]" {
			u[key] = append(u[key], value)
		}
	}
	return u
}

func TestUnitsAreSandboxed(t *testing.T) {
	t.Parallel()
	both := map[string][]string{
		"NoNewPrivileges": {"yes"}, "CapabilityBoundingSet": {""}, "AmbientCapabilities": {""},
		"ProtectSystem": {"strict"},
		"ProtectHome":   {"yes"}, "PrivateTmp": {"yes"}, "PrivateDevices": {"yes"}, "ProtectClock": {"yes"},
		"ProtectControlGroups": {"yes"}, "ProtectHostname": {"yes"}, "ProtectKernelLogs": {"yes"},
		"ProtectKernelModules": {"yes"}, "ProtectKernelTunables": {"yes"},
		"RestrictAddressFamilies": {"AF_INET AF_INET6 AF_UNIX"}, "RestrictNamespaces": {"yes"},
		"RestrictRealtime": {"yes"},
		"RestrictSUIDSGID": {"yes"}, "LockPersonality": {"yes"}, "MemoryDenyWriteExecute": {"yes"},
		"SystemCallArchitectures": {"native"}, "SystemCallFilter": {"@system-service", "~@privileged @resources"},
		"SystemCallErrorNumber": {"EPERM"}, "UMask": {"0077"}, "StateDirectoryMode": {"0700"}, "LimitCORE": {"0"},
	}
	own := unit{
		"User": {"broker"}, "PrivateUsers": {"yes"}, "ProtectProc": {"invisible"}, "ProcSubset": {"pid"},
		"RemoveIPC": {"yes"}, "StateDirectory": {"broker"},
	}
	for name, wants := range map[string][]unit{
		"broker.service": {both, own}, "gearman-job-server.service": {both, {"User": {"gearman"}}},
	} {
		u := readUnit(t, name)
		for _, want := range wants {
			for key, values := range want {
				if !slices.Equal(u[key], values) {
					t.Errorf("%s: %s is %q, not %q", name, key, u[key], values)
				}
			}
		}
		// These would weaken the sandbox.
		for _, key := range []string{
			"ReadWritePaths", "BindPaths", "ExecStartPre", "ExecStartPost", "PermissionsStartOnly",
		} {
			if len(u[key]) > 0 {
				t.Errorf("%s: %s=%q", name, key, u[key])
			}
		}
	}
}

func TestUnitsStartTheBrokerWithKnownOptions(t *testing.T) {
	t.Parallel()
	u := readUnit(t, "broker.service")
	words := strings.Fields(strings.Join(u["ExecStart"], " "))
	if len(words) < 2 || words[1] != "serve" {
		t.Fatalf("ExecStart=%q", words)
	}
	settings := filepath.Join(t.TempDir(), "broker.toml")
	if err := os.WriteFile(settings, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, word := range words {
		if word == "/etc/broker/broker.toml" {
			words[i] = settings
		}
	}
	args := append([]string{"check-config"}, words[2:]...)
	code, stdout, stderr := runCommand(args...)
	if code != cli.ExitOK || !strings.Contains(stdout, " /var/lib/broker/data ") || !slices.Contains(words, settings) {
		t.Errorf("%q: exit %d\n%s%s", args, code, stdout, stderr)
	}

	u = readUnit(t, "gearman-job-server.service")
	words = strings.Fields(strings.Join(u["ExecStart"], " "))
	if len(words) < 2 || filepath.Base(words[0]) != "gearmand" {
		t.Fatalf("ExecStart=%q", words)
	}
	if last := words[len(words)-1]; last != "$PARAMS" {
		t.Fatalf("ExecStart ends with %s", last)
	}
	params, ok := strings.CutPrefix(strings.Trim(u["Environment"][0], `"`), "PARAMS=")
	if !ok {
		t.Fatalf("Environment=%s", u["Environment"][0])
	}
	var listen string
	args = slices.DeleteFunc(append(words[1:len(words)-1], strings.Fields(params)...), func(w string) bool {
		return strings.HasPrefix(w, "--pid-file=") // this test may not write it
	})
	gearmand.Main(args, io.Discard, io.Discard, "test", func(l gearmand.Launch) error {
		listen = l.Config.Gearman.Listen.String()
		return nil
	})
	if listen != "localhost:4730" {
		t.Errorf("%q: %s", words, listen)
	}
	if env := u["Environment"][1]; env != "BROKER_DATA=/var/lib/gearman/broker" {
		t.Errorf("Environment=%s", env)
	}
}

func TestPackagedSettingsShowTheDefaults(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "packaging", "broker.toml"))
	if err != nil {
		t.Fatal(err)
	}
	var active []string
	for line := range strings.Lines(string(text)) {
		if setting, ok := strings.CutPrefix(line, "#"); ok && !strings.HasPrefix(setting, " ") &&
			strings.Contains(setting, " = ") {
			line = setting
		}
		active = append(active, line)
	}
	file := filepath.Join(t.TempDir(), "broker.toml")
	if err := os.WriteFile(file, []byte(strings.Join(active, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if changed := c.Changed(&defaults); len(changed) > 0 {
		t.Errorf("not defaults: %v", changed)
	}
}
