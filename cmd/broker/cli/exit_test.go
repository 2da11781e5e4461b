package cli

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestErrorsArePrintedInTheFormThatWasAskedFor(t *testing.T) {
	t.Parallel()
	err := &ExitError{
		Code: ExitNotFound, Err: &problem{Status: 404, Code: "job_not_found", Detail: "there is no job x"},
	}
	for format, want := range map[string]string{
		"table": "jobs: there is no job x\n",
		"json":  `{"error":"there is no job x","code":"job_not_found","status":404,"exit_code":4}` + "\n",
	} {
		cmd := jobsCommand()
		if err := cmd.ParseFlags([]string{"-o", format}); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		PrintError(&out, cmd, err)
		if out.String() != want {
			t.Errorf("-o %s prints %s, want %s", format, out.String(), want)
		}
	}
}

func TestFlagErrorsNameTheExpectedValue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		command *cobra.Command
		arg     string
		want    string
	}{
		{jobsCommand(), "--limit=x", `--limit "x": expected a number`},
		{pushCommand(), "--in=5", `--in "5": expected a span of time such as 90s, 5m or 1h30m`},
		{setLimitCommand(), "--burst=-1", "--burst: burst must be a whole number, 0 to 4294967295"},
		{drainCommand(), "--off=perhaps", `--off "perhaps": expected true or false`},
		{jobsCommand(), "--output=xml", `invalid argument "xml" for "-o, --output" flag: expected table or json`},
		{jobsCommand(), "--nosuch", "unknown flag: --nosuch"},
	} {
		if err := FlagError(test.command, test.command.ParseFlags([]string{test.arg})); err == nil ||
			err.Error() != test.want {
			t.Errorf("%s: %v, want %s", test.arg, err, test.want)
		}
	}
}

// An address at which nothing listens has its own exit code, whatever the protocol, and a text without a request.
func TestNothingAtAnAddressIsUnreachable(t *testing.T) {
	t.Parallel()
	source, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }() // it has served
	at := source.Addr().String()
	const nobody = "127.0.0.1:1"
	for name, c := range map[string]struct {
		cmd  *cobra.Command
		args []string
		want string
	}{
		"healthcheck":   {healthcheckCommand(), []string{"--server", nobody}, "no broker answers at " + nobody + ": dial"},
		"shadow status": {shadowStatus(nobody), nil, "no broker shadow at " + nobody + ": dial"},
		"gearmand": {
			importCommand(), []string{"--from", "gearmand", at, "--to", nobody}, "this broker: no broker answers: dial",
		},
		"faktory": {
			importCommand(), []string{"--from", "faktory", at, "--to", nobody}, "this broker: no broker answers: dial",
		},
		"redis": {
			importCommand(),
			[]string{"--from", "faktory", "redis://" + at, "--to", nobody},
			"this broker: no broker answers: dial",
		},
	} {
		c.cmd.SetArgs(c.args)
		c.cmd.SilenceErrors, c.cmd.SilenceUsage = true, true
		if err := c.cmd.Execute(); Code(err) != ExitUnreachable || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: exit code %d, %v", name, Code(err), err)
		}
	}
}
