package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// command runs the command line in this process.
func runCommand(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = dispatch(args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.toml")
	if err := os.WriteFile(bad, []byte("durability = \"never\"\ncolour = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   string
		code   int
		stdout string // a part of it
		stderr string
	}{
		{"", exitUsage, "", "usage: broker COMMAND"},
		{"help", exitOK, "check-config", ""},
		{"--help", exitOK, "usage: broker COMMAND", ""},
		{"version", exitOK, "broker ", ""},
		{"--version", exitOK, "broker ", ""},
		{"sreve", exitUsage, "", `no command "sreve"`},
		{"serve --help", exitOK, "--durability sync|relaxed|none", ""},
		{"serve --nonsense", exitUsage, "", "not defined: -nonsense"},
		{"serve extra", exitUsage, "", `unexpected argument "extra"`},
		{"check-config", exitOK, "the settings are good", ""},
		{"check-config --workq off --gearman 127.0.0.1:1", exitOK, "gearman.listen           127.0.0.1:1 ", ""},
		{"check-config --config " + bad, exitFailed, "", "colour: unknown setting (" + bad + ")\ndurability: "},
		{"serve --durability x --workq y", exitFailed, "", "durability: \"x\" is not sync, relaxed or none\nworkq.listen: "},
		{"check-config --config /nowhere", exitFailed, "", "/nowhere: no such file"},
	} {
		code, stdout, stderr := runCommand(strings.Fields(test.args)...)
		if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) {
			t.Errorf("broker %s: exit %d\n%s%s", test.args, code, stdout, stderr)
		}
	}
}

func TestPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	_, stdout, stderr := runCommand("check-config", "--password", "s3cret")
	if strings.Contains(stdout+stderr, "s3cret") || !strings.Contains(stdout, "(set)") {
		t.Errorf("%s%s", stdout, stderr)
	}
}
