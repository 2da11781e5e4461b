package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
)

// TestCommandLineIsDocumented checks that docs/cli.md names every command, and every command has a group and a short
// text.
func TestCommandLineIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range newRoot(io.Discard, io.Discard).Commands() {
		if !strings.Contains(string(page), "broker "+cmd.Name()) &&
			!strings.Contains(string(page), "`"+cmd.Name()+"`") {
			t.Errorf("docs/cli.md does not name broker %s", cmd.Name())
		}
		checkTexts(t, cmd)
	}
	for i, c := range cli.ExitCodes {
		if c.Code != i || !strings.Contains(string(page), fmt.Sprintf("\n| %d | %s |\n", c.Code, c.Meaning)) {
			t.Errorf("docs/cli.md does not say that exit code %d means: %s", c.Code, c.Meaning)
		}
	}
}

func checkTexts(t *testing.T, cmd *cobra.Command) {
	t.Helper()
	if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
		t.Errorf("%s: short text %q", cmd.CommandPath(), cmd.Short)
	}
	if cmd.Parent().HasParent() {
		return
	}
	if cmd.GroupID == "" && cmd.Name() != "help" && cmd.Name() != "completion" {
		t.Errorf("%s is in no group", cmd.CommandPath())
	}
	for _, sub := range cmd.Commands() {
		checkTexts(t, sub)
	}
}
