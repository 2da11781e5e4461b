package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"broker/integration/harness"
)

// A job that nobody takes is explained after some seconds, also one that ends with the command.
func TestRunSaysThatNoWorkerAsks(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	for _, more := range [][]string{nil, {"--ephemeral"}} {
		argv := append([]string{harness.Binary(t), "run", "nobody", "hello", "--server", b.HTTP}, more...)
		run := harness.Spawn(t, harness.Command{Argv: argv})
		harness.Eventually(t, func() string {
			if out := run.Output(); !strings.Contains(out, "still waiting: No worker asks for jobs of this queue") {
				return fmt.Sprintf("%q printed %q", argv, out)
			}
			return ""
		})
		r := harness.Exec(t, harness.Command{Argv: append(argv, "--timeout", "1s")})
		if r.Code == 0 {
			t.Errorf("%q: exit code 0 after its timeout, %s", argv, r.Stdout)
		}
	}
}

// A worker whose broker is gone says so, and ends with an exit code.
func TestWorkGivesUpAfterAnOutage(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	work := harness.Spawn(t, harness.Command{Argv: []string{
		harness.Binary(t), "work", "mail", "--server", b.HTTP, "--give-up-after", "1s", "--", "true",
	}})
	b.Kill()
	code, err := work.Wait(harness.Patience)
	check(t, err)
	equal(t, "exit code", code, 5)
	if out := work.Output(); !strings.Contains(out, "no broker answers") || !strings.Contains(out, "given up after") {
		t.Errorf("printed %s", out)
	}
}
