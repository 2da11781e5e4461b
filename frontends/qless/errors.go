package qless

import (
	"errors"
	"fmt"

	"broker/core"
	"broker/frontends/resp"
)

// scriptError is an error of the script, in the words of Redis and with the name of the script.
type scriptError struct {
	text string
	bare bool // raised by Redis itself, not by a line of the script
}

func (e *scriptError) Error() string { return e.text }

// fault makes an error that the script raises.
func fault(format string, args ...any) error { return &scriptError{text: fmt.Sprintf(format, args...)} }

// redisFault makes an error of a Redis command that the script calls.
func redisFault(text string) error { return &scriptError{text: text, bare: true} }

var (
	errArgs    = redisFault("Wrong number of args calling Redis command from script")
	errInteger = redisFault(resp.NotInteger)
	errFloat   = redisFault("ERR value is not a valid float")
)

// scriptText is the error line for an error of the script. Clients search it for known parts.
func scriptText(err error, sha string) string {
	var e *scriptError
	if errors.As(err, &e) && e.bare {
		return fmt.Sprintf("ERR %s script: %s, on @user_script:1.", trimERR(e.text), sha)
	}
	if e != nil {
		return fmt.Sprintf("ERR user_script:1: %s script: %s, on @user_script:1.", e.text, sha)
	}
	return errorText(err)
}

func trimERR(s string) string {
	if len(s) > 4 && s[:4] == "ERR " {
		return s[4:]
	}
	return s
}

// wireErrors maps each error of the core to its error line. Redis clients know the first words: MISCONF and OOM mean that the
// server cannot write, and BUSY that the client should retry.
var wireErrors = []struct {
	kind error
	text string
}{
	{core.ErrNotFound, "ERR no such job"},
	{core.ErrNoQueue, "ERR no such queue"},
	{core.ErrDuplicate, "ERR a job with this id exists"},
	{core.ErrNotUnique, "ERR a live job of the queue holds this unique key"},
	{core.ErrNotLeased, "BUSY the job is changed by another client, try again"},
	{core.ErrNotHolder, "BUSY the job is changed by another client, try again"},
	{core.ErrFinished, "BUSY the job is changed by another client, try again"},
	{core.ErrFull, "OOM the queue is full"},
	{core.ErrBusy, "BUSY the queue is in use"},
	{core.ErrInvalid, "ERR the broker cannot keep such a job"},
	{core.ErrDiskFull, "OOM the disk is nearly full, no new jobs are accepted"},
	{core.ErrStopped, "MISCONF the store failed, no changes are accepted"},
	{core.ErrDraining, "BUSY the broker is draining, no new jobs are accepted"},
	{core.ErrShutdown, "LOADING the broker is shutting down"},
	{core.ErrNoBatch, "ERR no such batch"},
	{core.ErrBatchState, "ERR the batch does not allow this now"},
	{core.ErrConflict, "BUSY the job is changed by another client, try again"},
	{core.ErrHasDependents, "ERR other jobs wait for this one"},
	{core.ErrForbidden, "NOPERM this user has no permissions to do this"},
	{core.ErrNoLimit, "ERR no such limit"},
	{core.ErrNoSchedule, "ERR no such schedule"},
	{core.ErrConfigured, "ERR set by the configuration file"},
}

// errorText is the error line, without its first byte and its end.
func errorText(err error) string {
	for _, row := range wireErrors {
		if errors.Is(err, row.kind) {
			return row.text
		}
	}
	return "ERR internal error"
}
