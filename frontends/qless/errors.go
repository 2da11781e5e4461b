package qless

import (
	"errors"
	"fmt"
	"strings"

	"broker/core"
	"broker/frontends/shared/resp"
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
		return fmt.Sprintf("ERR %s script: %s, on @user_script:1.", strings.TrimPrefix(e.text, "ERR "), sha)
	}
	if e != nil {
		return fmt.Sprintf("ERR user_script:1: %s script: %s, on @user_script:1.", e.text, sha)
	}
	return errorText(err)
}

// wireErrors has the lines of this front-end. They come before those that all front-ends share.
var wireErrors = map[error]string{
	core.ErrDuplicate: "ERR a job with this id exists",
	core.ErrNotLeased: "BUSY the job is changed by another client, try again",
	core.ErrNotHolder: "BUSY the job is changed by another client, try again",
	core.ErrFinished:  "BUSY the job is changed by another client, try again",
	core.ErrBusy:      "BUSY the queue is in use",
}

// errorText is the error line, without its first byte and its end.
func errorText(err error) string { return resp.ErrorText(wireErrors, err) }
