package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"broker/core/schema"
)

// The exit codes of all commands. Documented in docs/cli.md; scripts depend on them.
const (
	ExitOK          = 0
	ExitFailed      = 1  // any other reason
	ExitUsage       = 2  // the command line or the request is wrong: nothing was done
	ExitDamaged     = 3  // doctor: the store is damaged
	ExitNotFound    = 4  // no such job, queue, schedule, …
	ExitUnreachable = 5  // no broker answers at the address
	ExitDenied      = 6  // wrong or missing credentials, or the principal lacks the right
	ExitConflict    = 7  // the state does not allow it, or it has changed in the meantime
	ExitJobFailed   = 8  // run: the job ended, but not with success
	ExitLeft        = 9  // import: jobs are left at the source
	ExitDifferent   = 10 // replay: replies differ
	ExitEarly       = 11 // restore, doctor --verify-at: the archive does not prove the state of the moment
	ExitWorkers     = 12 // test: workers made mistakes
)

// ExitCodes lists the meaning of each code, for the manual pages and the documentation.
var ExitCodes = []struct {
	Code    int
	Meaning string
}{
	{ExitOK, "done"},
	{ExitFailed, "failed, for any other reason"},
	{ExitUsage, "the command line or the request is wrong; nothing was done"},
	{ExitDamaged, "`doctor`: the store is damaged, or `--salvage` could not copy all of it"},
	{ExitNotFound, "no such job, queue, worker, …"},
	{ExitUnreachable, "no broker answers at the address"},
	{ExitDenied, "wrong or missing credentials, or the principal lacks the right"},
	{ExitConflict, "the state does not allow it, or it has changed in the meantime"},
	{ExitJobFailed, "`run`, `work`: a job ended without success"},
	{ExitLeft, "`import`: jobs are left at the source; the table says why"},
	{ExitDifferent, "`replay`: replies differ from those in the recording"},
	{ExitEarly, "`restore`, `doctor --verify-at`: commits before the moment are missing, or may be missing"},
	{ExitWorkers, "`test`: workers made mistakes; the verdict names the jobs"},
}

// ExitError is an error with an exit code. With an empty Err nothing is printed, because the command has already
// printed its message.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// UsageError is an ExitError for a wrong command line.
func UsageError(err error) error { return &ExitError{Code: ExitUsage, Err: err} }

// Failed gives an error the code for failures, unless it has one already.
func Failed(err error) error {
	var exit *ExitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return &ExitError{Code: ExitFailed, Err: err}
}

// FlagError is the error for an invalid value of a flag. It describes the valid values, in place of the error of the
// parsing function.
func FlagError(_ *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	expected := ""
	switch wrong.GetFlag().Value.Type() {
	case "int", "int32", "int64", "float64":
		expected = "a number"
	case "uint", "uint8", "uint16", "uint32", "uint64":
		expected = "a number that is not negative"
	case "duration":
		expected = "a span of time such as 90s, 5m or 1h30m"
	case "bool":
		expected = "true or false"
	default:
		if _, detail, is := schema.FieldOf(err); is {
			return fmt.Errorf("--%s: %s", wrong.GetFlag().Name, detail)
		}
		return err
	}
	return fmt.Errorf("--%s %q: expected %s", wrong.GetFlag().Name, wrong.GetValue(), expected)
}

// PrintError prints the error of a command. With -o json it prints JSON with the exit code and the error of the API.
func PrintError(w io.Writer, cmd *cobra.Command, err error) {
	out := cmd.Flags().Lookup("output")
	if out == nil || out.Value.String() != string(formatJSON) {
		Say(w, "%s: %s\n", cmd.CommandPath(), err)
		return
	}
	answer := struct {
		Error    string `json:"error"`
		Code     string `json:"code,omitempty"`
		Status   int    `json:"status,omitempty"`
		ExitCode int    `json:"exit_code"`
	}{Error: err.Error(), ExitCode: Code(err)}
	if p := (*problem)(nil); errors.As(err, &p) {
		answer.Code, answer.Status = p.Code, p.Status
	}
	_ = json.NewEncoder(w).Encode(answer) // the terminal may be gone
}

// noArgs refuses arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// hasExit reports whether an error has one of these exit codes of its own.
func hasExit(err error, codes ...int) bool {
	var exit *ExitError
	return errors.As(err, &exit) && slices.Contains(codes, exit.Code)
}

// isRefused reports whether the broker has refused a request, so that it makes no sense to send it again. A broker that
// starts or stops, or has no leader, or does not know what came of it, has not refused it.
func isRefused(err error) bool {
	if p := (*problem)(nil); errors.As(err, &p) &&
		slices.Contains([]int{http.StatusServiceUnavailable, http.StatusGatewayTimeout}, p.Status) {
		return false
	}
	var exit *ExitError
	return errors.As(err, &exit) && exit.Code != ExitUnreachable
}

// Code is the exit code for the error of a command. Errors without a code come from the parser of the command line.
func Code(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	}
	return ExitUsage
}
