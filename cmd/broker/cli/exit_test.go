package cli

import (
	"bytes"
	"testing"
)

func TestErrorsArePrintedInTheFormThatWasAskedFor(t *testing.T) {
	t.Parallel()
	err := &ExitError{Code: ExitNotFound, Err: &problem{Status: 404, Code: "job_not_found", Detail: "there is no job x"}}
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
