package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"broker/cmd/broker/cli"
)

// runCommand runs the command line in this process.
func runCommand(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = execute(args, &out, &errs)
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
		{"", cli.ExitUsage, "", "broker [command]"},
		{"help", cli.ExitOK, "check-config", ""},
		{"--help", cli.ExitOK, "Run a broker:", ""},
		{"version", cli.ExitOK, "broker ", ""},
		{"--version", cli.ExitOK, "broker ", ""},
		{"sreve", cli.ExitUsage, "", `unknown command "sreve" for "broker"`},
		{"serve --help", cli.ExitOK, "--durability sync|relaxed|none", ""},
		{"serve --nonsense", cli.ExitUsage, "", "unknown flag: --nonsense"},
		{"serve extra", cli.ExitUsage, "", `unknown command "extra" for "broker serve"`},
		{"check-config", cli.ExitOK, "settings are valid", ""},
		{
			"check-config --workq off --gearman 127.0.0.1:1", cli.ExitOK,
			"gearman.listen 127.0.0.1:1 BROKER_GEARMAN_LISTEN", "",
		},
		{
			"check-config --config " + bad, cli.ExitFailed, "",
			"colour: unknown setting (" + bad + ", line 2)\ndurability: ",
		},
		{
			"serve --durability x --workq y", cli.ExitFailed, "",
			"workq.listen: \"y\" is not host:port, unix:/path or off (flag)\ndurability: \"x\" is not sync, relaxed or none",
		},
		{"check-config --config /nowhere", cli.ExitFailed, "", "/nowhere: no such file"},
	} {
		code, stdout, stderr := runCommand(strings.Fields(test.args)...)
		oneSpace := strings.Join(strings.Fields(stdout), " ") // columns may have any width
		if code != test.code || !strings.Contains(oneSpace, strings.TrimSpace(test.stdout)) ||
			!strings.Contains(stderr, test.stderr) {
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
